package cli

import (
	"testing"

	"github.com/unified-test-runner/utr/internal/testkit"
)

func TestJobs(t *testing.T) {
	for _, test := range []struct {
		why     string
		machine Machine
		uri     string
		local   string
		engine  string
		on      string
		want    int
	}{
		{why: "tests on embedded deployments mostly wait", machine: Machine{Cores: 2}, want: 16},
		{why: "many deployments on many cores are not faster", machine: Machine{Cores: 64}, want: 16},
		{why: "adapters compute until they are warm", machine: Machine{Cores: 2}, engine: "exec:adapter", want: 8},
		{why: "an adapter that is already running needs no start", machine: Machine{Cores: 2},
			engine: "tcp://localhost:9", want: 16},
		{why: "servers of another program use whole cores", machine: Machine{Cores: 2, Memory: 24 << 30},
			local: "bin", want: 2},
		{why: "their memory is limited", machine: Machine{Cores: 16, Memory: 13 << 30}, local: "bin", want: 3},
		{why: "a single test needs less than the limit", machine: Machine{Cores: 16, Memory: 1 << 30}, local: "bin", want: 1},
		{why: "the memory of other systems is not known", machine: Machine{Cores: 16}, local: "bin", want: 1},
		{why: "open files are limited", machine: Machine{Cores: 2, Files: 1024}, want: 7},
		{why: "the deployment has more hosts than was assumed before it opened", machine: Machine{Cores: 2, Files: 400},
			on: "single", want: 6},
		{why: "their number is enough", machine: Machine{Cores: 2, Files: 1936}, want: 16},
		{why: "one existing deployment needs few of them", machine: Machine{Files: 64}, uri: "mongodb://localhost",
			want: 1},
		{why: "there is one existing deployment", machine: Machine{Cores: 16}, uri: "mongodb://localhost", want: 1},
	} {
		b := newBench(t)
		b.Machine = func() Machine { return test.machine }
		args := []string{"run"}
		if test.uri != "" {
			args = append(args, "--uri", test.uri)
		}
		if test.local != "" {
			args = append(args, "--local", test.local)
		}
		if test.on != "" {
			args = append(args, "--topology", test.on)
		}
		if test.engine != "" {
			args = append(args, "--engine", test.engine)
		}
		b.Main(t.Context(), append(args, "-"))
		if b.ran == nil || b.ran.Jobs != test.want {
			t.Errorf("%s: %+v, want %d jobs; %s", test.why, b.ran, test.want, b.err.String())
		}
	}
}

func TestAvailableMemory(t *testing.T) {
	for text, want := range map[string]int64{
		"MemTotal:       25000000 kB\nMemAvailable:   24000000 kB\n": 24000000 << 10,
		"MemTotal:       25000000 kB\n":                              0, // before Linux 3.14
		"":                                                           0,
	} {
		testkit.Equal(t, text, availableMemory([]byte(text)), want)
	}
}
