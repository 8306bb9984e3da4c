// Checks Kubernetes objects against the schemas of the npm package kubernetes-models:
//   node check_manifests.js NODE_MODULES <objects.json     a JSON list of objects, each with "file"
// The schemas let unknown fields pass, so every read is watched: a field that the schema of its object never looked at is one
// that Kubernetes does not know. Exits with 1 and a line for everything wrong.
"use strict";
const path = require("path");
const modules = process.argv[2];
const objects = JSON.parse(require("fs").readFileSync(0, "utf8"));
let failed = 0;

function watched(value, unread, where) {
  if (value === null || typeof value !== "object") {
    return value;
  }
  const copy = Array.isArray(value) ? [] : {};
  for (const key of Object.keys(value)) {
    copy[key] = watched(value[key], unread, `${where}.${key}`);
    unread.add(`${where}.${key}`);
  }
  return new Proxy(copy, {
    get(target, key) {
      unread.delete(`${where}.${String(key)}`);
      return target[key];
    },
  });
}

function schemaOf(object) {
  const group = object.apiVersion;
  const models = require(path.join(modules, "kubernetes-models", group));
  const model = models[object.kind];
  const name = Object.keys(models).find((key) => key.startsWith("Io") && models[key] === model);
  return require(path.join(modules, "kubernetes-models", "_schemas", `${name}.js`)).validate;
}

for (const { file, object } of objects) {
  const name = `${file}: ${object.kind} ${object.metadata && object.metadata.name}`;
  const unread = new Set();
  let validate;
  try {
    validate = schemaOf(object);
  } catch (error) {
    console.log(`${name}: no schema for ${object.apiVersion} (${error.code || error.message})`);
    failed = 1;
    continue;
  }
  if (!validate(watched(object, unread, ""))) {
    for (const error of validate.errors) {
      console.log(`${name}: ${error.instancePath} ${error.message || JSON.stringify(error.params)}`);
    }
    failed = 1;
  }
  for (const field of unread) {
    console.log(`${name}: unknown field ${field}`);
    failed = 1;
  }
}
process.exit(failed);
