// The client: starts `wattle lsp` and shows what its commands say.
"use strict";

const { window, workspace } = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");

let client;

async function activate(context) {
  const command = workspace.getConfiguration("wattle").get("path") || "wattle";
  const output = window.createOutputChannel("Wattle");
  context.subscriptions.push(output);
  const run = { command, args: ["lsp"] };
  client = new LanguageClient("wattle", "Wattle", { run, debug: run }, {
    documentSelector: [{ scheme: "file", language: "wtl" }],
    middleware: {
      // Verdicts and traces are long: they go to the output panel.
      executeCommand: async (name, args, next) => {
        const said = await next(name, args);
        if (typeof said === "string") {
          output.appendLine(said);
          output.show(true);
        }
        return said;
      },
    },
  });
  await client.start();
}

function deactivate() {
  return client ? client.stop() : undefined;
}

module.exports = { activate, deactivate };
