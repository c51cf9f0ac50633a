"""What command lines are used for: kind, changes, target, lines and query, under the default catalogue."""

from textwrap import dedent

import pytest
from hypothesis import given
from hypothesis import strategies as st

from detectors import code, command_line
from detectors.catalogue import Tools
from detectors.code import changes_by_code
from detectors.use import Use

TOOLS = Tools()


def use_of(line: str) -> Use:
    """Return the use of a call of a tool that takes a command line."""
    return TOOLS.use("bash", {"command": line})


def told(use: Use) -> str:
    """One line for a use: ``edit+ a.py``, ``read a.py:1-20``, ``search src ?needle``; ``+`` says that it changes."""
    lines = f":{use.start}-{use.end}" if use.start or use.end else ""
    said = [f"{use.kind}{'+' if use.changes else ''}", f"{use.target}{lines}", f"?{use.query}" if use.query else ""]
    return " ".join(filter(None, said))


SHOWS = {
    "cat a.py": "read a.py",
    "cat -n ./src/a.py": "read src/a.py",
    "cat 'my file.txt'": "read my file.txt",
    "cat a.py b.py": "read",
    "cat a.py; cat b.py": "read",
    "cat a.py && ls": "read a.py",
    "cat a.py; sed -n 5p a.py": "read a.py",
    "cd /w && cat src/a.py": "read /w/src/a.py",
    "cd /w; cd src; cat a.py": "read /w/src/a.py",
    "cd /w && cat /etc/hosts": "read /etc/hosts",
    "head a.py": "read a.py:1-10",
    "head -n 20 a.py": "read a.py:1-20",
    "head -20 a.py": "read a.py:1-20",
    "head -n20 a.py": "read a.py:1-20",
    "head --lines=5 a.py": "read a.py:1-5",
    "head -c 100 a.py": "read a.py",
    "tail -n 20 a.py": "read a.py",
    "sed -n '1,50p' a.py": "read a.py:1-50",
    'sed -n "7p" a.py': "read a.py:7-7",
    "sed -n '10,$p' a.py": "read a.py:10-0",
    "sed -n '10,+5p' a.py": "read a.py:10-15",
    "sed -n -e '3,9p' a.py": "read a.py:3-9",
    "sed 's/a/b/' a.py": "read a.py",
    "sed -n '1,5p;9p' a.py": "read a.py",
    "nl -ba a.py | sed -n '100,150p'": "read a.py:100-150",
    "cat -n a.py | head -n 40": "read a.py:1-40",
    "cat a.py | sed -n '100,200p' | head -20": "read a.py:100-119",
    "sed -n '1,5p' a.py | head -20": "read a.py:1-5",
    "awk 'NR>=10 && NR<=20' a.py": "read a.py:10-20",
    "awk 'NR==10,NR==20 {print}' a.py": "read a.py:10-20",
    "awk '{print $1}' a.txt | sort | uniq -c": "read a.txt",
    "jq .name package.json": "read package.json",
    "cat a.txt | tr -d '\\n'": "read a.txt",
    "wc -l a.py": "read a.py",
    "ls": "read",
    "ls -la src": "read src",
    "pwd": "read",
    "env": "read",
    "echo $PATH": "read",
    "git status": "read",
    "git diff": "read",
    "git --no-pager diff | cat": "read",
    "git -C /w log --oneline -5": "read",
    "git show HEAD:src/a.py": "read HEAD:src/a.py",
    "git blame -L 10,20 a.py": "read a.py",
    "git stash list": "read",
    "git branch -a": "read",
    "docker inspect web": "read web",
    "tar -tzf a.tgz": "read a.tgz",
    "tar tf a.tar": "read a.tar",
    "unzip -l a.zip": "read a.zip",
    "pip list": "read",
    "npm ls": "read",
    "make -n": "read",
    "python -m json.tool a.json": "read a.json",
    "curl -s http://x/y | jq .": "read http://x/y",
    "curl -s -o /dev/null -w '%{http_code}' http://x": "read http://x",
    "wget -qO- http://x": "read http://x",
    "if [ -f a.py ]; then cat a.py; fi": "read a.py",
    "Get-Content -Path a.txt -TotalCount 10": "read a.txt",
    "$x = Get-Content a.txt": "read a.txt",
    "Get-ChildItem -Force | Select-Object -First 5": "read",
    "Get-Acl x": "read x",
    "cmd /c dir": "read",
}

SEARCHES = {
    "grep -rn foo src": "search src ?foo",
    'grep -n "foo bar" a.py | head': "search a.py ?foo bar",
    "grep -A 3 -e foo a.py": "search a.py ?foo",
    "grep foo a.py b.py": "search ?foo",
    "cat a.py | grep foo": "search a.py ?foo",
    "ls | grep foo": "search ?foo",
    "rg -n 'class \\w+' src -g '*.py'": "search src ?class \\w+",
    "ag foo lib": "search lib ?foo",
    "find . -name '*.py'": "search . ?*.py",
    "find src -type f -iname '*test*' | head": "search src ?*test*",
    "find . -name '*.py' | xargs grep -l foo": "search . ?*.py foo",
    "find . -name '*.py' -exec grep -l foo {} +": "search . ?*.py",
    "fd foo src": "search src ?foo",
    "git grep -n foo -- src": "search src ?foo",
    "git log | grep fix": "search ?fix",
    "which python": "search ?python",
    "command -v node": "search ?node",
    "x=$(grep -c foo a.py); echo $x": "search a.py ?foo",
    "Select-String -Pattern foo -Path a.txt": "search a.txt ?foo",
    "findstr foo a.txt": "search a.txt ?foo",
    "grep foo a.py > /tmp/hits": "search a.py ?foo",
}

EDITS = {
    "echo hi > a.txt": "edit+ a.txt",
    "echo hi >> a.txt": "edit+ a.txt",
    "printf x > /tmp/a.py": "edit+ /tmp/a.py",
    ": > a.txt": "edit+ a.txt",
    "> a.txt": "edit+ a.txt",
    "cat > a.py <<'EOF'\nimport os\npytest\nEOF": "edit+ a.py",
    "cat <<EOF > a.py\nx\nEOF": "edit+ a.py",
    "cat <<'EOF' | tee a.py\nx\nEOF": "edit+ a.py",
    "cat > a.py <<'EOF'\nx\nEOF\npython a.py": "edit+ a.py",
    "cat a.txt > b.txt": "edit+ b.txt",
    "grep foo a.py > hits.txt": "edit+ hits.txt",
    "echo x | sudo tee -a /etc/hosts": "edit+ /etc/hosts",
    "sed -i 's/a/b/' a.py": "edit+ a.py",
    "sed -i.bak -e 's/a/b/' a.py": "edit+ a.py",
    "sed -ni '1,5p' a.py": "edit+ a.py",
    "perl -pi -e 's/a/b/' a.py": "edit+ a.py",
    "cd /w && sed -i 's/a/b/' a.py && git diff": "edit+ /w/a.py",
    "mv a.py b.py": "edit+ b.py",
    "rm -rf build": "edit+ build",
    "mkdir -p src/x": "edit+ src/x",
    "chmod +x run.sh": "edit+ run.sh",
    "find . -name '*.pyc' -delete": "edit+",
    "find . -name '*.orig' -exec rm {} \\;": "edit+",
    "find . -type f -exec sed -i 's/a/b/' {} +": "edit+",
    "find . -name '*.py' -exec sh -c 'echo > $1' _ {} \\;": "edit+",
    "find . | xargs rm": "edit+",
    "patch -p1 < fix.diff": "edit+",
    "git commit -m 'fix: a | b'": "edit+",
    "git checkout -- a.py": "edit+ a.py",
    "git stash": "edit+",
    "git branch -D old": "edit+ old",
    "pip3 install -r requirements.txt": "edit+",
    "python -m pip install foo": "edit+ foo",
    "npm ci": "edit+",
    "apt-get install -y foo": "edit+ foo",
    "black .": "edit+ .",
    "ruff check --fix .": "edit+",
    "python manage.py migrate": "edit+",
    "make clean": "edit+",
    "kubectl apply -f a.yaml": "edit+ a.yaml",
    "Set-Content a.txt x": "edit+ a.txt",
    "apply_patch <<'EOF'\n*** Begin Patch\n*** Update File: a.py\n-x\n+y\n*** End Patch\nEOF": "edit+ a.py",
    "str_replace_editor create /w/a.py": "edit+ /w/a.py",
}

CHECKS = {
    "pytest": "check",
    "cd /w && A=1 pytest -q tests 2>&1 | tail -5": "check",
    "python3.11 -W ignore -m pytest -x": "check",
    "python -m unittest discover": "check",
    "poetry run pytest": "check",
    "uv run --with x pytest -q": "check",
    "npx --yes vitest run": "check",
    "npm test": "check",
    "npm run test:unit": "check",
    "npm run lint": "check",
    "yarn jest": "check",
    "hatch run test": "check",
    "make": "check",
    "make -C lib all": "check",
    "go test ./...": "check",
    "cargo build --release": "check",
    "mvn -q clean test": "check",
    "./gradlew test --tests X": "check",
    "black --check .": "check",
    "mypy src": "check",
    "git apply --check fix.diff": "check",
    "gcc-12 -o a a.c && ./a": "check",
    "./run_tests.sh": "check",
    "bash ./scripts/lint.sh": "check",
    "python tests/runtests.py foo": "check",
    "python manage.py test": "check",
    "./manage.py test app": "check",
    "node --check a.js": "check",
    "docker run --rm -v $PWD:/w -w /w img pytest": "check",
    "docker compose exec -T web bash -c 'pytest -q'": "check",
    "pytest > results.txt 2>&1": "check",
    "make 2>&1 | tee build.log": "check",
    "rm -rf build && make": "check+",
    "cat > a.py <<'EOF'\nx\nEOF\npytest": "check+",
    "git diff; pytest || true": "check",
}

RUNS = {
    "python a.py --flag": "run",
    "python a.py | grep err": "run",
    "python -c 'print(1)'": "run",
    "python -c \"open('a', 'w').write('x')\"": "run+",
    "python - <<'EOF'\nfrom pathlib import Path\nPath('a').write_text('x')\nEOF": "run+",
    "python - <<'EOF'\nprint(1)\nEOF": "run",
    "node -e \"require('fs').writeFileSync('a', 'x')\"": "run+",
    "python a.py > out.json": "run+",
    "python a.py > run.log 2>&1": "run",
    "python a.py 2>/dev/null": "run",
    "./a.out": "run",
    "bash script.sh": "run",
    "npm run dev": "run",
    "make run": "run",
    "go run main.go": "run",
    "cargo run": "run",
    "curl -X POST http://x": "run+",
    "curl -XDELETE http://x": "run+",
    "curl -d '{\"a\": 1}' http://x": "run+",
    "curl -O http://x/a.tgz": "run+",
    "wget http://x/a.tgz": "run+",
    "sqlite3 a.db 'SELECT 1'": "run",
    "sqlite3 a.db 'INSERT INTO t VALUES (1)'": "run+",
    "docker run -it img": "run",
    "nohup python a.py &": "run",
    'for f in *.py; do python "$f"; done': "run",
    "sleep 5; python a.py": "run",
    "unheard_of --option": "run",
    "Please test the module again": "run",
    "perl -Ilib a.pl": "run",
    "curl -sO http://x/a.tgz": "run+",
}

POLLS = {
    "sleep 30": "poll",
    "sleep 30 && docker ps": "poll",
    "sleep 5; cat out.log": "poll",
    "while ! curl -s localhost:8000; do sleep 1; done": "poll",
    "for i in 1 2 3; do sleep 1; done": "poll",
    "tail -f server.log": "poll",
    "tail -n 5 -F server.log": "poll",
    "ps aux | grep train": "poll",
    "kubectl rollout status deploy/api": "poll",
    "gh run watch 99": "poll",
    "wait": "poll",
    "Start-Sleep -Seconds 5": "poll",
}

REST = {
    "echo 'I think the bug is in a.py'": "plan",
    "echo hi > /dev/null": "plan",
    "echo hi 2>&1": "plan",
    "true": "plan",
    "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT && git add -A": "talk+",
    "submit": "talk",
    "xdotool click 1": "interact",
    "adb shell input tap 1 2": "interact",
    "cd /w": "other",
    "export A=1": "other",
    "A=1": "other",
    "Verification: done": "other",
    "1. First": "other",
}

WRAPPED = {
    "bash -c 'cat a.py'": "read a.py",
    'bash -lc "cd /w && cat a.py"': "read /w/a.py",
    "sh -c \"bash -c 'cat a.py'\"": "read a.py",
    "bash <<'EOF'\ncat a.py\nEOF": "read a.py",
    "eval 'cat a.py'": "read a.py",
    "ssh -p 22 me@host 'cat a.py'": "read a.py",
    "sudo -u bob cat a.py": "read a.py",
    "timeout -k 5 60s cat a.py": "read a.py",
    "env -i A=1 nice -n 10 cat a.py": "read a.py",
    "docker exec -it web cat a.py": "read a.py",
    "kubectl exec pod -- cat a.py": "read a.py",
    "conda run -n env cat a.py": "read a.py",
    'powershell.exe -Command "cat a.py"': "read a.py",
}


@pytest.mark.parametrize(
    ("line", "use"),
    [case for table in (SHOWS, SEARCHES, EDITS, CHECKS, RUNS, POLLS, REST, WRAPPED) for case in table.items()],
)
def test_uses(line, use):
    """What a line is for, whether it changes something, and what it aims at."""
    assert told(use_of(line)) == use
    assert use_of(line).executes


@pytest.mark.parametrize(
    ("line", "program"),
    [
        ("cd /w && A=1 sudo /usr/bin/git -C x status", "git"),
        ("python3.11 a.py", "python"),
        ("ls; pytest -q; ls", "pytest"),
        ("timeout 60 ./run.sh x", "run.sh"),
        (r"'C:\Program Files\py\python.exe' a.py", "python"),
        ("", "bash"),
    ],
)
def test_programs(line, program):
    """The program is that of the most telling command, without folder, version and wrappers."""
    assert use_of(line).program == program


def test_an_edit_of_one_line_is_told_from_a_text_about_it():
    """Only what the shell itself would do counts, not what is quoted or commented."""
    assert told(use_of("echo 'rm -rf x; sed -i y' # > z")) == "plan"
    assert told(use_of("grep 'git commit > x' a.md")) == "search a.md ?git commit > x"


@pytest.mark.parametrize(
    ("code", "changes"),
    [
        ("open('a').read()", False),
        ("open('a', 'rb')", False),
        ("open('a', 'w')", True),
        ("open(path, mode='ab')", True),
        ("f.write(x)", True),
        ("Path(a).write_text(x)", True),
        ("os.remove(a)", True),
        ("shutil.rmtree(a)", True),
        ("sys.stdout.flush()", False),
        ("select * from t", False),
        ("UPDATE t SET a = 1", True),
    ],
)
def test_changes_by_program_text(code, changes):
    """Program text that writes files or tables changes something."""
    assert changes_by_code(code) is changes


@given(
    st.sampled_from([*code._CALLS.values(), code._STATEMENTS]).flatmap(st.from_regex), st.sampled_from(["", " \u017f"])
)
def test_what_is_searched_for_first_is_in_all_that_changes(text, more):
    """No text that one of the patterns matches is passed over, nor one with letters beside ASCII's."""
    assert changes_by_code(text + more)


CHAINS = [*SHOWS, *SEARCHES, *EDITS, *CHECKS, *RUNS, *POLLS, *REST]
LINES = st.sampled_from([line for line in CHAINS if "<<" not in line and "#" not in line and line[-1] != "&"])
WRAPPERS = st.sampled_from(
    ["sudo ", "time ", "timeout 60 ", "env A=1 ", "A=1 B='x y' ", "nohup ", "uv run ", "nice -n 5 "]
)
PLAIN = st.sampled_from([line for line in CHAINS if line.replace(" ", "").replace("-", "").replace(".", "").isalnum()])


@given(LINES, LINES)
def test_a_chain_is_as_telling_as_its_most_telling_command(one, other):
    """The kind of a chain is that of one of its commands, whichever comes first, and changes are those of both."""
    chain, back = use_of(f"{one}\n{other}"), use_of(f"{other}\n{one}")
    rank = command_line._TELLING
    assert chain.kind == back.kind == max(use_of(one).kind, use_of(other).kind, key=rank.__getitem__)
    assert chain.changes == back.changes == (use_of(one).changes or use_of(other).changes)


@given(PLAIN, WRAPPERS)
def test_wrappers_make_no_difference(line, wrapper):
    """Who runs a command, and for how long, does not change what it is for."""
    if not line.startswith(("cd ", "export ", "A=1", "wait", "true", "command ", "time", "Please")):
        assert use_of(wrapper + line) == use_of(line)


@given(PLAIN, st.sampled_from(["'{}'", '"{}"', "{}''"]))
def test_quotes_make_no_difference(line, quotes):
    """A word in quotes is the same word."""
    program, *words = line.split()
    assert use_of(" ".join((program, *map(quotes.format, words)))) == use_of(line)


def test_a_script_with_many_commands():
    """Lines of a script count as one chain."""
    script = dedent("""\
        set -euo pipefail
        cd /w
        # first look
        git status
        for f in a b; do
          if [ -f "$f" ]; then
            sed -i 's/x/y/' "$f"
          fi
        done
        git diff | cat
    """)
    assert told(use_of(script)) == "edit+ $f"
