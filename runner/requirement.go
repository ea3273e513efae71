package runner

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/unified-test-runner/utr/deployment"
	"github.com/unified-test-runner/utr/engine"
	"github.com/unified-test-runner/utr/format/operations"
	"github.com/unified-test-runner/utr/matchers"
	"github.com/unified-test-runner/utr/specs"
)

// world is what requirements are checked against.
type world struct {
	deployment deployment.Description
	engine     engine.Description
}

// unmet returns why no requirement is met, and the number of unmet conditions of the closest one. It returns "" if a
// requirement is met or the list is empty.
func unmet(requirements []specs.Requirement, w world) (why string, lacks int) {
	var reasons []string
	for _, r := range requirements {
		all := w.against(r)
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

// against returns a reason for each unmet condition of a requirement ("runOnRequirement").
func (w world) against(r specs.Requirement) (reasons []string) {
	check := func(met bool, need, have string) {
		if !met {
			reasons = append(reasons, needs(need, have))
		}
	}
	d := w.deployment
	version := specs.Version{Major: d.Version[0], Minor: d.Version[1], Patch: d.Version[2]}
	if least := r.MinServerVersion; least != nil {
		check(version.Compare(*least) >= 0, "server "+least.String()+" or later", version.String())
	}
	if most := r.MaxServerVersion; most != nil {
		check(version.Compare(*most) <= 0, "server "+most.String()+" or earlier", version.String())
	}
	if len(r.Topologies) > 0 {
		have := string(d.Topology)
		if d.Topology == deployment.Sharded && d.ReplicaSetShards {
			have = "sharded (shards are replica sets)"
		}
		check(slices.ContainsFunc(r.Topologies, w.isTopology), "topology "+strings.Join(r.Topologies, " or "), have)
	}
	check(r.Serverless != "require", "Atlas Serverless", "none") // utr cannot recognize one
	switch {
	case r.Auth == nil || *r.Auth == d.Auth:
	case d.Auth:
		reasons = append(reasons, "needs a deployment without authentication")
	default:
		reasons = append(reasons, "needs authentication, which this deployment does not use")
	}
	if r.AuthMechanism != "" {
		same := func(have string) bool { return strings.EqualFold(have, r.AuthMechanism) }
		have := cmp.Or(strings.Join(d.AuthMechanisms, ", "), "none")
		check(slices.ContainsFunc(d.AuthMechanisms, same), "authentication mechanism "+r.AuthMechanism, have)
	}
	if need, have := w.parameter(r); need != "" {
		check(false, need, have)
	}
	if r.CSFLE != nil {
		// Server 4.2, and libmongocrypt with crypt_shared or mongocryptd, as reported by the engine ("csfle").
		encrypts, libmongocrypt, described := w.encryption()
		supported := encrypts && version.Compare(specs.Version{Major: 4, Minor: 2}) >= 0
		have := fmt.Sprintf("server %s, and the engine %s", version, described)
		check(!*r.CSFLE || supported, "client-side field level encryption", have)
		check(*r.CSFLE || !supported, "no client-side field level encryption", have)
		if want, err := specs.ParseVersion(r.MinLibmongocrypt); supported && r.MinLibmongocrypt != "" {
			check(err == nil && libmongocrypt != nil && libmongocrypt.Compare(want) >= 0,
				"libmongocrypt "+r.MinLibmongocrypt+" or later", "an engine with "+described)
		}
	}
	return reasons
}

func needs(need, have string) string { return "needs " + need + ", the deployment has " + have }

// isTopology compares topologies: "sharded" is any sharded cluster,
// "sharded-replicaset" one whose shards are replica sets.
func (w world) isTopology(name string) bool {
	have := w.deployment.Topology
	switch deployment.Topology(name) {
	case have:
		return true
	case deployment.Sharded:
		return have == deployment.ShardedReplicaSet
	case deployment.ShardedReplicaSet:
		return have == deployment.Sharded && w.deployment.ReplicaSetShards
	}
	return false
}

// parameter returns the first server parameter that differs or is missing, or "" ("serverParameters").
func (w world) parameter(r specs.Requirement) (need, have string) {
	if r.ServerParameters == nil {
		return "", ""
	}
	for _, f := range r.ServerParameters.Fields {
		need = "server parameter " + f.Key
		if v, err := f.Value.BSON(); err == nil {
			need += "=" + matchers.ExtendedJSON(v, false)
		}
		has, err := w.deployment.Parameters.LookupErr(f.Key)
		if err != nil {
			return need, "no such parameter"
		}
		if len(matchers.New(nil).Value(f.Key, f.Value, has, operations.Value)) > 0 {
			return need, matchers.ExtendedJSON(has, false)
		}
	}
	return "", ""
}

// encryption returns whether the engine supports encryption, the version of
// libmongocrypt if known, and a description.
func (w world) encryption() (encrypts bool, libmongocrypt *specs.Version, described string) {
	described = "no encryption"
	if encrypts = slices.Contains(w.engine.Features, engine.FeatureEncryption); encrypts {
		described = "encryption of unknown version"
	}
	for _, f := range w.engine.Features {
		if number, found := strings.CutPrefix(f, engine.FeatureLibmongocrypt); found {
			number, _, _ = strings.Cut(number, "-") // a pre-release counts as its release
			if v, err := specs.ParseVersion(number); err == nil {
				libmongocrypt, described = &v, "libmongocrypt "+v.String()
			}
		}
	}
	return encrypts, libmongocrypt, described
}
