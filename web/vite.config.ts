import { defineConfig } from "vite";

// Relative addresses, so that the page works behind a path prefix. What it is made of lies in
// console/, where the server looks for it; files with a hash in their names are kept by browsers.
export default defineConfig({
  base: "./",
  esbuild: { jsx: "automatic", jsxImportSource: "preact", legalComments: "none" },
  build: {
    target: "es2022",
    assetsDir: "console",
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    chunkSizeWarningLimit: 1200,
  },
});
