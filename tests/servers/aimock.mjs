// Starts the model server on a free loopback port, says where it is, and stops when its standard input closes.
import { LLMock } from "@copilotkit/aimock";

const server = new LLMock({ host: "127.0.0.1", port: 0, logLevel: "silent" });
await server.start();
console.log(server.url);
process.stdin.resume().on("end", () => server.stop().then(() => process.exit(0)));
