package runner

import (
	"fmt"
	"slices"
	"strings"

	"github.com/unified-test-runner/utr/deployment"
	"github.com/unified-test-runner/utr/engine"
	"github.com/unified-test-runner/utr/matchers"
	"github.com/unified-test-runner/utr/specs"
)

// world is what requirements are judged by: what the deployment is, and what
// the engine can do.
type world struct {
	deployment deployment.Description
	engine     engine.Description
}

// requirementChecks has a row for each condition that a runOnRequirement can
// have. A row answers "" if the condition is met or absent, and otherwise what
// is needed and what the deployment has ("runOnRequirement").
var requirementChecks = []struct {
	demand string
	unmet  func(specs.Requirement, world) string
}{
	{"minServerVersion", func(r specs.Requirement, w world) string {
		if have := w.version(); r.MinServerVersion != nil && have.Compare(*r.MinServerVersion) < 0 {
			return needs("server %s or later", *r.MinServerVersion).has("%s", have)
		}
		return ""
	}},
	{"maxServerVersion", func(r specs.Requirement, w world) string {
		if have := w.version(); r.MaxServerVersion != nil && have.Compare(*r.MaxServerVersion) > 0 {
			return needs("server %s or earlier", *r.MaxServerVersion).has("%s", have)
		}
		return ""
	}},
	{"topologies", func(r specs.Requirement, w world) string {
		if len(r.Topologies) > 0 && !slices.ContainsFunc(r.Topologies, w.isTopology) {
			return needs("topology %s", strings.Join(r.Topologies, " or ")).has("%s", w.topology())
		}
		return ""
	}},
	{"serverless", func(r specs.Requirement, w world) string {
		switch {
		case r.Serverless == "require" && !w.deployment.Serverless:
			return needs("Atlas Serverless").has("none")
		case r.Serverless == "forbid" && w.deployment.Serverless:
			return needs("a deployment other than Atlas Serverless").has("it")
		}
		return ""
	}},
	{"auth", func(r specs.Requirement, w world) string {
		have := map[bool]string{true: "authentication enabled", false: "authentication disabled"}
		if r.Auth != nil && *r.Auth != w.deployment.Auth {
			return needs("%s", have[*r.Auth]).has("%s", have[w.deployment.Auth])
		}
		return ""
	}},
	{"authMechanism", func(r specs.Requirement, w world) string {
		same := func(have string) bool { return strings.EqualFold(have, r.AuthMechanism) }
		if r.AuthMechanism != "" && !slices.ContainsFunc(w.deployment.AuthMechanisms, same) {
			return needs("authentication mechanism %s", r.AuthMechanism).has("%s", list(w.deployment.AuthMechanisms))
		}
		return ""
	}},
	{"serverParameters", unmetParameters},
	{"csfle", unmetEncryption},
}

// unmet says why none of the requirements is met, "" if one is or there are
// none, and how many conditions of the closest one are not met.
func unmet(requirements []specs.Requirement, w world) (why string, lacks int) {
	var reasons []string
	for _, r := range requirements {
		all := unmetOne(r, w)
		if len(all) == 0 {
			return "", 0
		}
		if reason := strings.Join(all, "; and "); !slices.Contains(reasons, reason) {
			reasons = append(reasons, reason)
		}
		if lacks == 0 || len(all) < lacks {
			lacks = len(all)
		}
	}
	return strings.Join(reasons, "; or "), lacks
}

// unmetOne gives every reason against one requirement.
func unmetOne(r specs.Requirement, w world) (reasons []string) {
	for _, c := range requirementChecks {
		if reason := c.unmet(r, w); reason != "" {
			reasons = append(reasons, reason)
		}
	}
	return reasons
}

// need words the two halves of a reason.
type need string

func needs(format string, args ...any) need { return need("needs " + fmt.Sprintf(format, args...)) }

func (n need) has(format string, args ...any) string {
	return string(n) + ", the deployment has " + fmt.Sprintf(format, args...)
}

func list(words []string) string {
	if len(words) == 0 {
		return "none"
	}
	return strings.Join(words, ", ")
}

func (w world) version() specs.Version {
	v := w.deployment.Version
	return specs.Version{Major: v[0], Minor: v[1], Patch: v[2]}
}

// isTopology: "sharded" accepts any sharded cluster, "sharded-replicaset" only
// one whose shards are replica sets.
func (w world) isTopology(name string) bool {
	have := w.deployment.Topology
	if deployment.Topology(name) == deployment.ShardedReplicaSet {
		return have == deployment.ShardedReplicaSet || have == deployment.Sharded && w.deployment.ReplicaSetShards
	}
	if deployment.Topology(name) == deployment.Sharded && have == deployment.ShardedReplicaSet {
		return true
	}
	return deployment.Topology(name) == have
}

func (w world) topology() string {
	if w.deployment.Topology == deployment.Sharded && w.deployment.ReplicaSetShards {
		return "sharded (shards are replica sets)"
	}
	return string(w.deployment.Topology)
}

// unmetParameters: a parameter that the server does not have is not equal to
// anything, so that the requirement is not met ("serverParameters").
func unmetParameters(r specs.Requirement, w world) string {
	if r.ServerParameters == nil {
		return ""
	}
	for _, f := range r.ServerParameters.Fields {
		want := f.Key
		if v, err := f.Value.BSON(); err == nil {
			want += "=" + matchers.Extended(v, false)
		}
		have, err := w.deployment.Parameters.LookupErr(f.Key)
		if err != nil {
			return needs("server parameter %s", want).has("no such parameter")
		}
		if len(matchers.New(nil).Value(f.Key, f.Value, have, matchers.Nested)) > 0 {
			return needs("server parameter %s", want).has("%s", matchers.Extended(have, false))
		}
	}
	return ""
}

// unmetEncryption follows "csfle": server 4.2, libmongocrypt, and crypt_shared
// or mongocryptd. The engine reports the latter two.
func unmetEncryption(r specs.Requirement, w world) string {
	if r.CSFLE == nil {
		return ""
	}
	supported := w.version().Compare(specs.Version{Major: 4, Minor: 2}) >= 0 && slices.Contains(w.engine.Features, engine.FeatureEncryption)
	switch {
	case *r.CSFLE && !supported:
		return needs("client-side field level encryption").has("server %s, and the engine %s", w.version(), w.encryption())
	case !*r.CSFLE && supported:
		return needs("no client-side field level encryption").has("server %s, and the engine %s", w.version(), w.encryption())
	case *r.CSFLE && r.MinLibmongocrypt != "":
		want, err := specs.ParseVersion(r.MinLibmongocrypt)
		have, known := w.libmongocrypt()
		if err != nil || !known || have.Compare(want) < 0 {
			return needs("libmongocrypt %s or later", r.MinLibmongocrypt).has("an engine with %s", w.encryption())
		}
	}
	return ""
}

func (w world) encryption() string {
	if v, known := w.libmongocrypt(); known {
		return "libmongocrypt " + v.String()
	}
	if slices.Contains(w.engine.Features, engine.FeatureEncryption) {
		return "encryption of unknown version"
	}
	return "no encryption"
}

func (w world) libmongocrypt() (specs.Version, bool) {
	for _, f := range w.engine.Features {
		if number, found := strings.CutPrefix(f, engine.FeatureLibmongocrypt); found {
			number, _, _ = strings.Cut(number, "-") // a pre-release counts as its release
			v, err := specs.ParseVersion(number)
			return v, err == nil
		}
	}
	return specs.Version{}, false
}
