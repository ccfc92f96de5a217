"""A calculator as a tool server: the Model Context Protocol over stdin and stdout, a JSON-RPC message a line."""
import json
import sys

ADD = {
    "name": "add",
    "description": "Adds two whole numbers.",
    "inputSchema": {
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
        "required": ["a", "b"],
    },
}


def answer(text, is_error=False):
    return {"content": [{"type": "text", "text": text}], "isError": is_error}


def call(name, arguments):
    a, b = arguments.get("a"), arguments.get("b")
    if name != "add" or not isinstance(a, int) or not isinstance(b, int):
        return answer("error: add takes two whole numbers, a and b", is_error=True)
    return answer(str(a + b))


def reply(method, params):
    if method == "initialize":
        return {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
                "serverInfo": {"name": "calculator", "version": "1"}}
    if method == "tools/list":
        return {"tools": [ADD]}
    if method == "tools/call":
        return call(params["name"], params["arguments"])
    return {}  # ping


for line in sys.stdin:
    message = json.loads(line)
    if "id" in message:  # not a notification
        result = reply(message["method"], message.get("params", {}))
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
