// Azure's clients of Resource Manager: arm.mjs MODULES pools|deployments|groups. Reads base, key, subscription,
// name, template.

import { createRequire } from "node:module";
import path from "node:path";
import readline from "node:readline/promises";

const [, , modules, what] = process.argv;
const need = createRequire(path.join(modules, "x.js"));
const ask = JSON.parse((await readline.createInterface({ input: process.stdin })[Symbol.asyncIterator]().next()).value);
const credential = (key) => ({ getToken: async () => ({ token: key, expiresOnTimestamp: Date.now() + 3600e3 }) });
const options = { endpoint: ask.base, retryOptions: { maxRetries: 0 } };
const GROUP = "walk-node", NAME = ask.name;

async function all(pages) {
  const found = [];
  for await (const one of pages) found.push(one);
  return found;
}

async function refusal(promise) {
  const error = await promise.then(() => null, (e) => e);
  const told = error.details?.error ?? error.details ?? {};
  return { status: error.statusCode, code: told.code ?? error.code, message: told.message ?? error.message };
}

async function pools() {
  const { ContainerAppsAPIClient } = need("@azure/arm-appcontainers");
  const connect = (key) => new ContainerAppsAPIClient(credential(key), ask.subscription, options).containerAppsSessionPools;
  const pools = connect(ask.key);
  const document = (most) => ({
    location: "westeurope", poolManagementType: "Dynamic", containerType: "PythonLTS",
    scaleConfiguration: { maxConcurrentSessions: most, readySessionInstances: 0 },
    dynamicPoolConfiguration: { lifecycleConfiguration: { lifecycleType: "Timed", cooldownPeriodInSeconds: 600 } },
    sessionNetworkConfiguration: { status: "EgressDisabled" },
  });
  const get = async () => (await pools.get(GROUP, NAME)).scaleConfiguration.maxConcurrentSessions;
  const put = (most) => (pools.beginCreateOrUpdateAndWait ?? pools.createOrUpdate).call(pools, GROUP, NAME, document(most));
  const made = await put(5);
  const seen = { create: { name: made.name, endpoint: made.poolManagementEndpoint }, get: await get() };
  await (pools.beginUpdateAndWait ?? pools.update).call(pools, GROUP, NAME, { scaleConfiguration: { maxConcurrentSessions: 7 } });
  seen.update = await get();
  seen.listed = [(await all(pools.listByResourceGroup(GROUP))).map((p) => p.name),
    (await all(pools.listBySubscription())).map((p) => p.name)];
  seen.refused = await refusal((async () => put(-1))());
  await (pools.beginDeleteAndWait ?? pools.delete).call(pools, GROUP, NAME);
  seen.delete = (await refusal(pools.get(GROUP, NAME))).code;
  seen.key = JSON.stringify(await refusal(connect("wrong").get(GROUP, NAME)));
  return seen;
}

async function deployments() {
  const { DeploymentsClient } = need("@azure/arm-resourcesdeployments");
  const connect = (key) => new DeploymentsClient(credential(key), ask.subscription, options);
  const { deployments, deploymentOperations } = connect(ask.key);
  const document = (more = {}) => ({ properties: { mode: "Incremental", template: ask.template, parameters: Object.fromEntries(
    Object.entries({ environmentName: "env", sessionPoolName: NAME, ...more }).map(([name, value]) => [name, { value }])) } });
  const last = (id) => id.split("/").at(-1);
  const call = (name, ...args) => (deployments[`begin${name[0].toUpperCase()}${name.slice(1)}AndWait`] ?? deployments[name]).call(deployments, ...args);
  const is = async (name) => { const r = await deployments.checkExistence(GROUP, name); return r.body ?? r; };
  const seen = {
    validate: (await call("validate", GROUP, NAME, document())).properties.provisioningState,
    what_if: (await call("whatIf", GROUP, NAME, document())).changes.map((c) => [c.changeType, last(c.resourceId)]),
  };
  const made = await call("createOrUpdate", GROUP, NAME, document());
  seen.create = { state: made.properties.provisioningState, made: made.properties.outputResources.map((r) => last(r.id)) };
  seen.get = [(await deployments.get(GROUP, NAME)).name, await is(NAME), await is("none")];
  seen.listed = (await all(deployments.listByResourceGroup(GROUP))).map((d) => d.name);
  seen.operations = (await all(deploymentOperations.list(GROUP, NAME))).map((o) => o.properties.provisioningState);
  seen.refused = await refusal((async () => call("createOrUpdate", GROUP, NAME, document({ cpu: 17 })))());
  await call("delete", GROUP, NAME);
  seen.delete = await is(NAME);
  seen.key = JSON.stringify(await refusal(connect("wrong").deployments.get(GROUP, NAME)));
  return seen;
}

async function groups() {
  const { ResourceManagementClient } = need("@azure/arm-resources");
  const connect = (key) => new ResourceManagementClient(credential(key), ask.subscription, options).resourceGroups;
  const groups = connect(ask.key);
  const made = await groups.createOrUpdate(GROUP, { location: "westeurope" });
  return { made: made.name, got: (await groups.get(GROUP)).properties.provisioningState,
    key: JSON.stringify(await refusal(connect("wrong").get(GROUP))) };
}

console.log(JSON.stringify(await { pools, deployments, groups }[what]()));
process.exit(0);
