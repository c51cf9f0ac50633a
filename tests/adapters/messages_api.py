"""A stand-in of the Anthropic API that asks for given commands, one a turn, and keeps what it is shown of them."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class MessagesApi:
    """Answers `/v1/messages` of conversations that have the tool; all else is answered with a word.

    Attributes:
        shown: the texts of the results in the latest request.
    """

    def __init__(self, tool, commands):
        self.tool = tool
        self.left = iter(enumerate(commands))
        self.shown = []
        api = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                api.answer(self, json.loads(body or b"{}"))

            def do_GET(self):
                self.send_response(404)
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True

    @property
    def url(self):
        """Where it is."""
        return f"http://127.0.0.1:{self.server.server_address[1]}"

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()

    def answer(self, request, asked):
        """Ask for the next command, in the form that is wanted."""
        if "count_tokens" in request.path:
            return self.write(request, "application/json", json.dumps({"input_tokens": 10}))
        text = {"type": "text", "text": "finished"}
        block = text
        if any(each.get("name") == self.tool for each in asked.get("tools") or ()):
            self.note(asked)
            n, command = next(self.left, (-1, ""))
            if n >= 0:
                call = {"type": "tool_use", "id": f"toolu_{n:020d}", "name": self.tool, "input": {"command": command}}
                block = call
        if not asked.get("stream"):
            return self.write(request, "application/json", json.dumps(self.message(asked, [block], block)))
        return self.write(request, "text/event-stream", self.events(asked, block))

    def note(self, asked):
        """Keep the results that a request shows."""
        blocks = [each for message in asked["messages"] for each in message["content"] if isinstance(each, dict)]
        self.shown = [json.dumps(each) for each in blocks if each.get("type") in {"tool_result", "text"}]

    def message(self, asked, content, block):
        """Make a message."""
        reason = "tool_use" if block["type"] == "tool_use" else "end_turn"
        return {
            "id": "msg_1", "type": "message", "role": "assistant", "model": asked.get("model", "m"),
            "content": content, "stop_reason": reason, "stop_sequence": None,
            "usage": {"input_tokens": 10, "output_tokens": 5},
        }  # fmt: skip

    def events(self, asked, block):
        """Make the stream of a message."""
        start = {**self.message(asked, [], block), "stop_reason": None}
        if block["type"] == "tool_use":
            empty = {**block, "input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        else:
            empty, delta = {**block, "text": ""}, {"type": "text_delta", "text": block["text"]}
        reason = self.message(asked, [], block)["stop_reason"]
        events: list[dict[str, Any]] = [
            {"type": "message_start", "message": start},
            {"type": "content_block_start", "index": 0, "content_block": empty},
            {"type": "content_block_delta", "index": 0, "delta": delta},
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": None},
             "usage": {"output_tokens": 5}},
            {"type": "message_stop"},
        ]  # fmt: skip
        return "".join(f"event: {each['type']}\ndata: {json.dumps(each)}\n\n" for each in events)

    def write(self, request, kind, text):
        """Write an answer."""
        data = text.encode()
        request.send_response(200)
        request.send_header("Content-Type", kind)
        request.send_header("Content-Length", str(len(data)))
        request.end_headers()
        request.wfile.write(data)
