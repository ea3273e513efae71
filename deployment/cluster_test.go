package deployment

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/unified-test-runner/utr/deployment/lock"
	"github.com/unified-test-runner/utr/embedded"
	"github.com/unified-test-runner/utr/internal/testkit"
)

// A cluster is described correctly, whatever its connection string and the options that clients require. Each host can
// be reached with a direct connection, and one worker has the cluster at a time.
func TestCluster(t *testing.T) {
	// Options in the TXT record of the SRV name.
	txt := map[string]string{"sharded": "authSource=admin", "replicaset": "replicaSet=rs0",
		"load-balanced": "loadBalanced=true"}
	for _, words := range []string{"single 8.0", "single 8.0 noscripting", "single 8.0 auth", "sharded 8.0 auth",
		"single api",
		"sharded 8.0 srv", "replicaset 8.0 srv", "load-balanced 8.0 srv", "replicaset api", "sharded api", "load-balanced api"} {
		t.Run(words, func(t *testing.T) {
			topology, _, _ := strings.Cut(words, " ")
			auth := strings.Contains(words, "auth")
			s := newScene(t, words)
			hosts := parsed(t, s.d.URI()).hosts
			if strings.Contains(words, "srv") {
				resolves(t, hosts, txt[topology])
				s.o.URI = "mongodb+srv://" + srvName + "/?tls=false"
			}
			name := topology + " 8.0"
			if auth {
				name += " auth"
			}
			s.play("open; offers " + name + "; lend a; theirs a")
			d := s.the("a")
			about := d.Description()
			routers := about.Topology == Sharded || about.Topology == LoadBalanced
			testkit.Equal(t, "topology, shards and hosts", []any{about.Topology, about.ReplicaSetShards, about.Hosts},
				[]any{Topology(topology), routers, hosts})
			testkit.Equal(t, "access control, no scripts, and URI",
				[]any{about.Auth, slices.Contains(about.Lacks, JavaScript), d.URI(), len(about.AuthMechanisms) > 0},
				[]any{auth, strings.Contains(words, "noscripting"), s.o.URI, true})
			usable(t, s.o.ServerAPI, d)
			busy, cancel := context.WithCancelCause(t.Context())
			cancel(errors.New("enough"))
			_, err := s.Acquire(busy, 0)
			testkit.ErrorContains(t, err, "waiting for a cluster to be free: enough")
			s.play("refuse 1 no offer 1; return a; lend a; sweep 0 0; clean true false")
		})
	}
}

// The error explains why a deployment cannot be used. On a busy machine, the errors of hosts may come too late. The
// test then tries again with a longer limit.
func TestUnreachable(t *testing.T) {
	hosts := func(o embedded.Options) string { return strings.Join(serve(t, o).Hosts(), ",") }
	open, locked, tls := hosts(embeddedAs("replicaset")), hosts(embeddedAs("auth")), hosts(embedded.Options{TLS: true})
	balanced, api := serve(t, embeddedAs("load-balanced")).URI(), serve(t, embeddedAs("api")).URI()
	silent, _ := listening(t)
	names := strings.NewReplacer("OPEN", open, "LOCKED", locked, "USES-TLS", tls, "BALANCED", balanced, "API", api,
		"SILENT", silent)
	stories(t, "unreachable", func(t *testing.T, text, message string) {
		t.Parallel()
		for limit := 400 * time.Millisecond; ; limit *= 4 {
			text := names.Replace(text)
			if u, err := parseURI(text); err == nil {
				text = u.with("serverSelectionTimeoutMS", fmt.Sprint(limit.Milliseconds())).String()
			}
			s, err := OpenCluster(t.Context(), ClusterOptions{URI: text, Lock: &lock.Options{}})
			if err == nil {
				t.Fatal("no error", s.Close())
			}
			testkit.Contains(t, err.Error())
			want := strings.Split(names.Replace(strings.ReplaceAll(message, "LIMIT", limit.String())), ";")
			missing := slices.IndexFunc(want, func(part string) bool { return !strings.Contains(err.Error(), part) })
			if missing < 0 {
				return
			} else if limit > 20*time.Second {
				t.Fatalf("%q is missing in: %v", want[missing], err)
			}
		}
	})
	t.Run("the connection string sets the limit", func(t *testing.T) {
		_, err := OpenCluster(t.Context(), ClusterOptions{URI: "mongodb://" + silent + "/?serverSelectionTimeoutMS=50"})
		testkit.ErrorContains(t, err, silent+" did not answer within 50ms")
	})
	t.Run("it does not wait for a host that refuses connections", func(t *testing.T) {
		const gone = "mongodb://127.0.0.1:1/?serverSelectionTimeoutMS=3600000"
		_, err := OpenCluster(testkit.Context(t), ClusterOptions{URI: gone, Lock: &lock.Options{}})
		testkit.ErrorContains(t, err, "nothing listens there")
		testkit.ErrorContains(t, Clean(testkit.Context(t), gone, "", nil), "nothing listens there")
	})
}
