-- wrk script: `tools/call` of the echo tool with a unique id and a unique text; every body is checked.
--
-- Environment: BENCH_TOOL (exposed tool names, separated by commas; called in turn), BENCH_ERA (modern or legacy), BENCH_SESSION (legacy session id, may
-- be empty), BENCH_HEADERS (extra headers, one `Name: value` a line).
-- An answer is good when it is HTTP 200, is not an error, and carries the text that belongs to its own id, so an
-- answer delivered to the wrong request counts as bad. The last line printed is `BENCH {json}`.

local tools = {}
for name in string.gmatch(os.getenv("BENCH_TOOL") or "echo", "[^,]+") do table.insert(tools, name) end
local modern = (os.getenv("BENCH_ERA") or "modern") == "modern"
local session = os.getenv("BENCH_SESSION") or ""

wrk.method = "POST"
wrk.headers["Content-Type"] = "application/json"
wrk.headers["Accept"] = "application/json, text/event-stream"
if modern then
  wrk.headers["MCP-Protocol-Version"] = "2026-07-28"
  wrk.headers["Mcp-Method"] = "tools/call"
else
  wrk.headers["MCP-Protocol-Version"] = "2025-11-25"
  if session ~= "" then wrk.headers["Mcp-Session-Id"] = session end
end
for name, value in string.gmatch(os.getenv("BENCH_HEADERS") or "", "([^:\n]+):%s*([^\n]+)") do
  wrk.headers[name] = value
end

local meta = ""
if modern then
  meta = ',"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",'
    .. '"io.modelcontextprotocol/clientInfo":{"name":"bench","version":"1.0.0"},'
    .. '"io.modelcontextprotocol/clientCapabilities":{}}'
end
local before_id = '{"jsonrpc":"2.0","id":'
local before_name = ',"method":"tools/call","params":{"name":"'
local before_text = '","arguments":{"text":"hello world '
local after_text = '"}' .. meta .. "}}"

local threads = {}
function setup(thread)
  table.insert(threads, thread)
  thread:set("first", #threads * 100000000)
end

good = 0
bad = 0
sample = ""
local next_id = 0
local headers_of = {}

function init(args)
  next_id = first
  -- Here and not above, because wrk adds Host to wrk.headers just before init.
  for index, name in ipairs(tools) do
    headers_of[index] = { ["Mcp-Name"] = modern and name or nil }
    for key, value in pairs(wrk.headers) do headers_of[index][key] = value end
  end
end

function request()
  next_id = next_id + 1
  local index = next_id % #tools + 1
  local body = before_id .. next_id .. before_name .. tools[index] .. before_text .. next_id .. after_text
  return wrk.format(nil, nil, headers_of[index], body)
end

function response(status, headers, body)
  local id = string.match(body, '"id": ?(%d+)')
  local text = string.match(body, "hello world (%d+)")
  if status == 200 and id and id == text and not string.find(body, '"isError": ?true') then
    good = good + 1
  else
    bad = bad + 1
    if sample == "" then sample = status .. " " .. string.sub(body, 1, 300) end
  end
end

function done(summary, latency, requests)
  local g, b, s = 0, 0, ""
  for _, thread in ipairs(threads) do
    g = g + thread:get("good")
    b = b + thread:get("bad")
    if s == "" then s = thread:get("sample") end
  end
  local errors = summary.errors
  io.write(string.format(
    'BENCH {"good":%d,"bad":%d,"seconds":%.6f,"p50_us":%d,"p99_us":%d,"max_us":%d,'
      .. '"connect":%d,"read":%d,"write":%d,"timeout":%d,"sample":%q}\n',
    g, b, summary.duration / 1e6, latency:percentile(50), latency:percentile(99), latency.max,
    errors.connect, errors.read, errors.write, errors.timeout, (string.gsub(s, "[%c\"\\]", " "))))
end
