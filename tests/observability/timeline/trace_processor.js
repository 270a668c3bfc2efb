// Runs Perfetto's own trace processor outside a browser: requests come in on standard input, replies go out.
// Usage: node trace_processor.js FOLDER, the folder of engine_bundle.js and trace_processor*.wasm.

const fs = require("fs");
const path = require("path");
const vm = require("vm");

const folder = process.argv[2];

class LocalRequest {
  open(_method, address) {
    this.file = path.join(folder, path.basename(address));
  }

  send() {
    const content = fs.readFileSync(this.file);
    this.response = content.buffer.slice(content.byteOffset, content.byteOffset + content.length);
    this.status = 200;
  }
}

const port = {
  postMessage(reply) {
    for (let at = 0; at < reply.length; ) at += fs.writeSync(1, reply, at);
  },
};

// What a worker of Perfetto's page has; without `process`, by which the bundle would know that it is not in one.
const worker = {
  WorkerGlobalScope: Object, XMLHttpRequest: LocalRequest, location: {href: "file:///engine_bundle.js"},
  console: {log() {}, warn() {}, error: console.error},
  URL, TextDecoder, TextEncoder, performance, setTimeout, clearTimeout, crypto: globalThis.crypto, Uint8Array,
};
worker.self = worker;
vm.runInNewContext(fs.readFileSync(path.join(folder, "engine_bundle.js"), "utf8"), worker);
worker.onmessage({data: port});
process.stdin.on("data", (chunk) => port.onmessage({data: new Uint8Array(chunk)}));
