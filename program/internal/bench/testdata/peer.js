// The checks and conversions of the specifications repository, with its packages: js-yaml, which must have version 5, and
// ajv. It validates files and folders as utr validate does: it reads the JSON twin of each YAML file, compares them, and
// validates both. Arguments: validate or convert, a folder of schemas, paths.
const fs = require("fs"), path = require("path"), {isDeepStrictEqual} = require("util");
const yaml = require("js-yaml"), Ajv = require("ajv").default;
const options = {schema: yaml.CORE_SCHEMA.withTags(yaml.mergeTag)};
const [task, schemas, ...paths] = process.argv.slice(2);
const ajv = new Ajv({strict: false}), compiled = {};
const text = file => fs.readFileSync(file, "utf8");
const filesOf = p => !fs.statSync(p).isDirectory() ? [p] :
	fs.readdirSync(p).filter(name => name[0] != ".").flatMap(name => filesOf(path.join(p, name)));
function isValid(suite) {
	const version = suite?.schemaVersion?.split(".").slice(0, 2).join(".");
	if (!version) return false;
	compiled[version] ??= ajv.compile(JSON.parse(text(schemas + "/schema-" + version + ".json")));
	return compiled[version](suite);
}
let valid = 0, twins = 0;
for (const file of paths.flatMap(filesOf)) {
	try {
		const stem = file.replace(/\.(yml|yaml|json)$/, ""), isYAML = /\.ya?ml$/.test(file);
		if (!isYAML && (!file.endsWith(".json") || fs.existsSync(stem + ".yml"))) continue;
		const suite = isYAML ? yaml.load(text(file), options) : JSON.parse(text(file));
		if (task === "convert") {
			fs.writeFileSync(stem + ".json", JSON.stringify(suite, null, 2) + "\n");
		} else if (isYAML && fs.existsSync(stem + ".json")) {
			const twin = JSON.parse(text(stem + ".json"));
			if (isDeepStrictEqual(suite, twin)) twins++;
			if (!isValid(twin)) continue;
		}
		if (task === "validate" && !isValid(suite)) continue;
		valid++;
	} catch (error) {
		if (process.env.PEER_DEBUG) console.error(file, error.message);
	}
}
console.log(valid, twins);
