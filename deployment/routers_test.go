package deployment

import (
	"slices"
	"testing"

	"github.com/unified-test-runner/utr/embedded"
	"github.com/unified-test-runner/utr/internal/testkit"
)

// A mongos that does not answer is left out of the connection strings and the description, with a message, at the start
// and when a test has found one. One that answers again is used again.
func TestRouters(t *testing.T) {
	d := serve(t, embedded.Options{Topology: embedded.Sharded, Mongoses: 3})
	hosts := d.Hosts()
	silent, _ := listening(t) // accepts connections
	var messages notes
	source, err := OpenCluster(testkit.Context(t), ClusterOptions{Note: messages.add,
		URI: parsed(t, d.URI()).at(append([]string{silent}, hosts...)...).String()})
	testkit.Check(t, err)
	t.Cleanup(func() { testkit.Check(t, source.Close()) })
	testkit.Contains(t, messages.String(), "the mongos "+silent+" is left out, and the run continues with the others: ")
	broken := func() {
		c, err := source.Acquire(testkit.Context(t), 0)
		testkit.Check(t, err)
		source.Release(c, true)
	}
	uses := func(want ...string) {
		t.Helper()
		c, err := source.Acquire(testkit.Context(t), 0)
		testkit.Check(t, err)
		defer source.Release(c, false)
		testkit.Equal(t, "mongoses", [][]string{c.Description().Hosts, parsed(t, c.URI()).hosts,
			parsed(t, c.SingleURI()).hosts},
			[][]string{want, want, want[:1]})
		usable(t, "", c)
	}
	uses(hosts...)
	testkit.Check(t, d.Kill(hosts[0]))
	broken()
	uses(hosts[1:]...)
	testkit.Contains(t, messages.String(), "the mongos "+hosts[0]+" is left out")
	testkit.Check(t, d.Restart(hosts[0]))
	broken()
	uses(hosts...)
	for _, host := range hosts {
		testkit.Check(t, d.Kill(host))
	}
	broken()
	_, err = source.Acquire(testkit.Context(t), 0)
	testkit.ErrorContains(t, err, "no cluster is left", "connection refused")
	testkit.Equal(t, "hosts that are left", slices.Contains(source.Offers()[0].Hosts, silent), false)
}
