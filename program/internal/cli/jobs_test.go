package cli

import (
	"testing"
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
		{why: "a cluster plays one test at a time, with the fail points of its servers", machine: Machine{Cores: 16}, local: "bin",
			want: 1},
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
