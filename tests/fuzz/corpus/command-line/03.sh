cat <<'EOF' > a.py
x
EOF
