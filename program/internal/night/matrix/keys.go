package matrix

// shape is the form of the value of a key.
type shape uint8

const (
	text   shape = iota // text, number or truth value
	toggle              // true or false; a flag without a value
	onOff               // true or false, or on or off
	list                // one text or several; the flag is repeated
	pairs               // a document; the flag is repeated with NAME=VALUE
	axis                // one text or several; each is a cluster
)

// key is a setting of the file and its flag of utr run.
type key struct {
	name  string
	shape shape
	flag  string // "" if it has the name of the key
}

// cellTimeout is the only setting that is not a flag of utr run.
const cellTimeout = "cell-timeout"

// settingKeys are the settings of clusters, engines, suites, options and defaults.
var settingKeys = []key{
	{"auth", onOff, ""}, {"tls", toggle, ""}, {"server-api", text, ""}, {"fail-points", text, ""},
	{"uri-options", pairs, "uri-option"},
	{"known-failing", list, ""}, {"require-fail-points", toggle, ""}, {"retry-failed", text, ""}, {"policy", text, ""},
	{"backoff", text, ""},
	{"reseed", text, ""},
	{"run", list, ""}, {"skip", list, ""}, {"jobs", text, ""}, {"count", text, ""}, {"min-tests", text, ""},
	{"shuffle", text, ""},
	{"timeout", text, ""}, {"wait-for-lock", text, ""}, {"overwrite", toggle, ""}, {"fail-fast", toggle, ""},
	{"events", toggle, ""},
	{cellTimeout, text, ""},
}

// clusterKind is a kind of deployment. Its value is a document, or the value of the first key.
type clusterKind struct {
	name string
	keys []key
}

var clusterKinds = []clusterKind{
	{name: "embedded", keys: []key{
		{"topology", axis, ""}, {"server-version", axis, ""}, {"members", text, ""}, {"mongoses", text, ""}}},
	{name: "uri", keys: []key{{"uri", text, ""}, {"single-uri", text, ""}}},
	{name: "orchestration", keys: []key{
		{"url", text, "orchestration"}, {"topology", axis, ""}, {"cluster", axis, ""}, {"clusters", text, ""},
		{"version", axis, "orchestration-version"}, {"files", text, "orchestration-files"}}},
	{name: "local", keys: []key{
		{"dir", text, "local"}, {"topology", axis, ""}, {"members", text, ""}, {"mongoses", text, ""}, {"shards", text,
			"local-shards"}}},
}

func keyNames(keys []key) (names []string) {
	for _, k := range keys {
		names = append(names, k.name)
	}
	return names
}
