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

// A cluster is what it says, whichever way it is named and whatever its clients have
// to declare; each host of it can be reached alone, and one worker has it at a time.
func TestCluster(t *testing.T) {
	// The options in the TXT record of a name in DNS that stands for it.
	txt := map[string]string{"sharded": "authSource=admin", "replicaset": "replicaSet=rs0", "load-balanced": "loadBalanced=true"}
	for _, words := range []string{"single 8.0", "single 8.0 noscripting", "single 8.0 auth", "sharded 8.0 auth", "single api",
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
			s.tell("open; offers " + name + "; lend a; theirs a")
			d := s.the("a")
			about := d.Description()
			routers := about.Topology == Sharded || about.Topology == LoadBalanced
			testkit.Equal(t, "topology, shards and hosts", []any{about.Topology, about.ReplicaSetShards, about.Hosts},
				[]any{topology, routers, hosts})
			testkit.Equal(t, "access control, no scripts, and URI", []any{about.Auth, about.NoScripting, d.URI(), len(about.AuthMechanisms) > 0},
				[]any{auth, strings.Contains(words, "noscripting"), s.o.URI, true})
			usable(t, s.o.ServerAPI, d)
			busy, cancel := context.WithCancelCause(t.Context())
			cancel(errors.New("enough"))
			_, err := s.Acquire(busy, 0)
			testkit.Fails(t, err, "waiting for a cluster to be free: enough")
			s.tell("refuse 1 no offer 1; return a; lend a; sweep 0 0; clean true false")
		})
	}
}

// The error says in words that help why a deployment cannot be used. What each host
// did is known only once it did it: on a busy machine it is asked again, for longer.
func TestUnreachable(t *testing.T) {
	hosts := func(o embedded.Options) string { return strings.Join(serve(t, o).Hosts(), ",") }
	open, locked, tls := hosts(embeddedAs("replicaset")), hosts(embeddedAs("auth")), hosts(embedded.Options{TLS: true})
	balanced, api := serve(t, embeddedAs("load-balanced")).URI(), serve(t, embeddedAs("api")).URI()
	silent, _ := listening(t)
	names := strings.NewReplacer("OPEN", open, "LOCKED", locked, "USES-TLS", tls, "BALANCED", balanced, "API", api, "SILENT", silent)
	stories(t, "unreachable", func(t *testing.T, text, says string) {
		t.Parallel()
		for limit := 400 * time.Millisecond; ; limit *= 4 {
			text := names.Replace(text)
			if u, err := parseURI(text); err == nil {
				text = u.with("serverSelectionTimeoutMS", fmt.Sprint(limit.Milliseconds())).String()
			}
			s, err := OpenCluster(t.Context(), ClusterOptions{URI: text, Lock: &lock.Options{}})
			if err == nil {
				t.Fatal("it can be used", s.Close())
			}
			testkit.Says(t, err.Error())
			want := strings.Split(names.Replace(strings.ReplaceAll(says, "LIMIT", limit.String())), ";")
			missing := slices.IndexFunc(want, func(part string) bool { return !strings.Contains(err.Error(), part) })
			if missing < 0 {
				return
			} else if limit > 20*time.Second {
				t.Fatalf("%q is missing in: %v", want[missing], err)
			}
		}
	})
	t.Run("the limit is in the connection string", func(t *testing.T) {
		_, err := OpenCluster(t.Context(), ClusterOptions{URI: "mongodb://" + silent + "/?serverSelectionTimeoutMS=50"})
		testkit.Fails(t, err, "no answer from "+silent+" within 50ms")
	})
	t.Run("what refuses a connection is not waited for", func(t *testing.T) {
		const gone = "mongodb://127.0.0.1:1/?serverSelectionTimeoutMS=3600000"
		_, err := OpenCluster(testkit.Context(t), ClusterOptions{URI: gone, Lock: &lock.Options{}})
		testkit.Fails(t, err, "nothing listens there")
		testkit.Fails(t, Clean(testkit.Context(t), gone, "", nil), "nothing listens there")
	})
}
