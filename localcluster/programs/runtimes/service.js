// What Node makes of its container's limits, as JSON by HTTP. Arguments: address and port.

const http = require("http");
const os = require("os");
const v8 = require("v8");

const limits = () => ({
  cpus: os.availableParallelism(),
  listed: os.cpus().length,
  memory: v8.getHeapStatistics().heap_size_limit,
});
const [address, port] = process.argv.slice(2);
http.createServer((_, response) => response.end(JSON.stringify(limits()))).listen(port, address);
