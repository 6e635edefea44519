// Runs the extension with stand-ins for the editor's two modules; the server is the real one.
"use strict";
const Module = require("module");
const { spawn } = require("child_process");
const assert = require("assert");

const shown = [];
const vscode = {
  window: { createOutputChannel: () => ({ appendLine: (t) => shown.push(t), show: () => {} }) },
  workspace: { getConfiguration: () => ({ get: () => process.env.WATTLE }) },
};

// As much of the client as the extension uses: it starts the server and greets it.
class LanguageClient {
  constructor(id, name, server, options) {
    Object.assign(this, { server, options });
  }
  async start() {
    const { command, args } = this.server.run;
    this.child = spawn(command, args, { stdio: ["pipe", "pipe", "inherit"] });
    const greeting = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "initialize", params: { capabilities: {} } });
    this.child.stdin.write(`Content-Length: ${Buffer.byteLength(greeting)}\r\n\r\n${greeting}`);
    const answer = await new Promise((done, failed) => {
      let text = "";
      this.child.on("error", failed);
      this.child.on("exit", () => failed(new Error("the server ended")));
      this.child.stdout.on("data", (part) => {
        text += part;
        const at = text.indexOf("\r\n\r\n");
        if (at >= 0 && text.length > at + 4 && text.endsWith("}")) done(JSON.parse(text.slice(at + 4)));
      });
    });
    this.capabilities = answer.result.capabilities;
    this.child.removeAllListeners("exit");
    LanguageClient.last = this;
  }
  async stop() {
    this.child.kill();
  }
}

const load = Module._load;
Module._load = (name, ...rest) => {
  if (name === "vscode") return vscode;
  if (name === "vscode-languageclient/node") return { LanguageClient };
  return load(name, ...rest);
};

(async () => {
  const extension = require(process.env.EXTENSION);
  const context = { subscriptions: [] };
  await extension.activate(context);
  const client = LanguageClient.last;
  assert(client.capabilities.codeLensProvider && client.capabilities.hoverProvider, "what the server offers");
  assert.strictEqual(client.options.documentSelector[0].language, "wtl");
  // What a command says goes to the output panel.
  const said = await client.options.middleware.executeCommand("wattle.check", [], async () => "holds");
  assert.strictEqual(said, "holds");
  assert.deepStrictEqual(shown, ["holds"]);
  assert.strictEqual(context.subscriptions.length, 1);
  await extension.deactivate();
  console.log("the extension works");
})().catch((why) => {
  console.error(why);
  process.exit(1);
});
