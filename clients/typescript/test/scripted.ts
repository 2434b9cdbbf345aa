// A server that answers each request by the next line of a script, to show a client failures.

import { createServer, type IncomingHttpHeaders } from "node:http";
import type { AddressInfo } from "node:net";
import type { TestContext } from "node:test";

export interface Received {
  line: string;
  headers: IncomingHttpHeaders;
  body: string;
}

/** An answer, `"drop"` to hang up, or `"hang"` to answer nothing. */
export type Step = { status: number; body?: unknown; headers?: Record<string, string> } | "drop" | "hang";

/** Start a server for one test. Returns its address, and the requests so far. */
export async function serve(context: TestContext, ...script: Step[]): Promise<{ url: string; received: Received[] }> {
  const received: Received[] = [];
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    received.push({
      line: `${request.method} ${request.url}`,
      headers: request.headers,
      body: Buffer.concat(chunks).toString(),
    });
    const step = script[received.length - 1] ?? "hang";
    if (step === "drop") request.socket.destroy();
    if (typeof step === "string") return;
    response.writeHead(step.status, { "Content-Type": "application/json", ...step.headers });
    response.end(typeof step.body === "string" ? step.body : JSON.stringify(step.body ?? {}));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  context.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, received };
}
