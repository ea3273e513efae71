package deployment

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/unified-test-runner/utr/embedded"
)

const patience = 30 * time.Second // of a busy machine

// Each way in which a deployment cannot be used is told in words that help,
// and within the time that was given.
func TestUnreachable(t *testing.T) {
	serve := func(o embedded.Options) *embedded.Deployment {
		t.Helper()
		d, err := embedded.Start(context.Background(), o)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = d.Close() })
		return d
	}
	hosts := func(d *embedded.Deployment) string {
		u, err := parseURI(d.URI())
		if err != nil {
			t.Fatal(err)
		}
		return strings.Join(u.hosts, ",")
	}
	open := hosts(serve(embedded.Options{Topology: embedded.ReplicaSet, Members: 1}))
	locked := hosts(serve(embedded.Options{Users: []embedded.User{{Name: "u", Password: "right-pw"}}}))
	tls := hosts(serve(embedded.Options{TLS: true}))
	balanced := serve(embedded.Options{Topology: embedded.LoadBalanced}).URI()
	silent, err := net.Listen("tcp", "127.0.0.1:0") // accepts, and never answers
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = silent.Close() })
	for _, r := range []struct {
		reason, uri string
		want        []string
	}{
		{"nothing listens", "mongodb://127.0.0.1:1/?serverSelectionTimeoutMS=3000", []string{"no answer from 127.0.0.1:1 within 3s", "nothing listens there"}},
		{"two hosts, and nothing listens", "mongodb://127.0.0.1:1,127.0.0.1:2/?serverSelectionTimeoutMS=3000", []string{"\n  127.0.0.1:1: ", "\n  127.0.0.1:2: "}},
		{"it accepts and never answers", "mongodb://" + silent.Addr().String() + "/?serverSelectionTimeoutMS=3000", []string{"within 3s", "not answer"}},
		{"a wrong password", "mongodb://u:wrong-pw@" + locked + "/", []string{"user or password is wrong"}},
		{"no user", "mongodb://" + locked + "/", []string{"it wants authentication, and the connection string names no user"}},
		{"another set", "mongodb://" + open + "/?replicaSet=other&serverSelectionTimeoutMS=3000", []string{`no host is a member of a replica set named "other"`}},
		{"TLS is missing", "mongodb://" + tls + "/?serverSelectionTimeoutMS=3000", []string{"if it wants TLS, add tls=true"}},
		{"TLS without the authority", "mongodb://" + tls + "/?tls=true&serverSelectionTimeoutMS=3000", []string{"tlsCAFile"}},
		{"TLS where there is none", "mongodb://" + open + "/?tls=true&serverSelectionTimeoutMS=3000", []string{"hung up"}},
		{"no load balancer for one mongos", balanced, []string{"--single-uri"}},
	} {
		t.Run(r.reason, func(t *testing.T) {
			t.Parallel() // most wait for all of their time
			begun := time.Now()
			s, err := OpenCluster(context.Background(), ClusterOptions{URI: r.uri})
			if err == nil {
				_ = s.Close()
				t.Fatal("it can be used")
			}
			for _, w := range r.want {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("%q is missing in: %v", w, err)
				}
			}
			if strings.Contains(err.Error(), "-pw") {
				t.Errorf("a password is told: %v", err)
			}
			if took := time.Since(begun); took > patience {
				t.Errorf("it took %s", took)
			}
		})
	}
}

// What is fine is not refused by the same checks.
func TestReachable(t *testing.T) {
	d, err := embedded.Start(context.Background(), embedded.Options{Users: []embedded.User{{Name: "u", Password: "pw"}}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = d.Close() }()
	s, err := OpenCluster(context.Background(), ClusterOptions{URI: d.URI()})
	if err != nil {
		t.Fatal(err)
	}
	if offers := s.Offers(); len(offers) != 1 || !offers[0].Auth {
		t.Errorf("%+v", offers)
	}
}
