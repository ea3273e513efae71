package cli

// Targets of a run. Each run has exactly one. The flag of that name chooses it; the default is embedded deployments.
const (
	onEmbedded      = "embedded"
	onURI           = "uri"
	onLocal         = "local"
	onOrchestration = "orchestration"
)

// targets are the flags that choose a target and exclude each other.
var targets = []string{onURI, onLocal, onOrchestration}

// needs are the flags that require another flag.
var needs = []struct{ flag, other string }{
	{"single-uri", onURI},
	{"local-shards", onLocal},
	{"cluster", onOrchestration},
	{"clusters", onOrchestration},
	{"orchestration-version", onOrchestration},
	{"orchestration-files", onOrchestration},
	{"older-than", onOrchestration},
	{"durations", "shard"},
	{"engines", "engine"},
	{"earlier", "html"},
	{"ca-file", "tls"},
	{"seed", "generate"},
	{"write", "generate"},
	{"limit", "generate"},
	{"left", "csot"},
	{"jitter", "try"},
	{"tokens", "try"},
	{"wire", "try"},
	{"csot", "try"},
	{"deprioritized", "select"},
}

// excludes are the flags that contradict others.
var excludes = []struct {
	flag   string
	others []string
	why    string
}{
	{"topology", []string{onURI}, "the deployment has its own"},
	{"server-version", targets, "the servers have their own"},
	{"members", []string{onURI, onOrchestration}, "the clusters have their own"},
	{"mongoses", []string{onURI, onOrchestration}, "the clusters have their own"},
	{"auth", []string{onURI}, "the connection string decides"},
	{"auth", []string{"cluster"}, "the clusters have their own"},
	{"tls", []string{onURI}, "the connection string decides"},
	{"tls", []string{"cluster"}, "the clusters have their own"},
	{"quiet", []string{"verbose"}, "it prints less, not more"},
	{"known-failing", []string{"generate"}, "it names tests of suites"},
	{"policy", []string{"question"}, "a question has its own policies"},
	{"diff", []string{"try", "list"}, "it compares two policies"},
	{"select", []string{"list", "diff"}, "it is about the selection of one server"},
}

// target returns the target of a run. A flag overrides the environment.
func (f *flags) target() string {
	for _, t := range targets {
		if f.Changed(t) {
			return t
		}
	}
	if f.inv.env(envURI) != "" {
		return onURI
	}
	return onEmbedded
}

// given returns "--NAME" for a flag that was set, "$UTR_URI" for a URI from the environment, or "".
func (f *flags) given(name string) string {
	flag := f.Lookup(name)
	switch {
	case flag == nil:
	case flag.Changed && flag.Value.String() != "" && flag.Value.String() != "false":
		return "--" + name
	case name == onURI && f.Lookup(onLocal) != nil && f.target() == onURI:
		return "$" + envURI
	}
	return ""
}

// check checks the flags of a command line against the tables, then their values. Rows for flags of other commands
// do not apply.
func (f *flags) check() error {
	for i, t := range targets {
		for _, other := range targets[:i] {
			if f.Changed(t) && f.Changed(other) && f.Lookup(onLocal) != nil {
				return usage("--%s and --%s exclude each other: both say where to run", other, t)
			}
		}
	}
	for _, e := range excludes {
		for _, other := range e.others {
			if spelled := f.given(other); f.Changed(e.flag) && spelled != "" {
				return usage("--%s cannot be used with %s: %s", e.flag, spelled, e.why)
			}
		}
	}
	for _, n := range needs {
		if f.Changed(n.flag) && f.Lookup(n.other) != nil && f.given(n.other) == "" {
			return usage("--%s requires --%s", n.flag, n.other)
		}
	}
	for _, check := range f.checks {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}
