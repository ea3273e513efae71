package runner

import (
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/result"
)

// block is how long a fail point of the test blocks some commands.
type block struct {
	commands []string
	time     result.Duration
}

// blocksFrom records how long a fail point blocks commands, if it does.
func (t *testRun) blocksFrom(failPoint bson.Raw) {
	var of struct {
		Data struct {
			Blocks   bool     `bson:"blockConnection"`
			TimeMS   int64    `bson:"blockTimeMS"`
			Commands []string `bson:"failCommands"`
		}
	}
	if err := bson.Unmarshal(failPoint, &of); err != nil || !of.Data.Blocks {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.blocks = append(t.blocks, block{of.Data.Commands,
		result.Duration(of.Data.TimeMS) * result.Duration(time.Millisecond)})
}

// waited adds the waits of an engine that reports its decisions.
func (t *testRun) waited(decisions []result.Decision) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, d := range decisions {
		switch d.Action {
		case "select":
			t.timings.Selection += d.Took
		case "back off":
			t.timings.BackOff += d.Took
		}
	}
}

// divided divides the time of the engine into what it reports. It requires that mu is held.
func (t *testRun) divided(logs []result.ClientLog) result.Timings {
	all := t.timings
	for _, l := range logs {
		all.Handshakes += checkOuts(l.Events)
		for _, e := range l.Events {
			if e.Type == result.CommandSucceeded || e.Type == result.CommandFailed {
				blocked := t.blocked(e)
				all.Blocked += blocked
				all.Server += e.Duration - blocked
			}
		}
	}
	all.Engine = max(0, all.Engine-all.Handshakes-all.Selection-all.BackOff-all.Blocked-all.Server)
	return all
}

// blocked returns how long a fail point blocked a command. A command that took less time was not blocked, unless the
// client gave up.
func (t *testRun) blocked(e result.Event) (longest result.Duration) {
	gaveUp := e.Failure != nil && e.Failure.Client
	for _, b := range t.blocks {
		if slices.Contains(b.commands, e.CommandName) && (e.Duration >= b.time || gaveUp) {
			longest = max(longest, min(e.Duration, b.time))
		}
	}
	return longest
}

// checkOuts returns how long check-outs of connections took. Check-outs of a server that overlap are interchangeable.
func checkOuts(log []result.Event) (sum result.Duration) {
	open := make(map[string][]time.Time)
	for _, e := range log {
		switch started := open[e.Address]; {
		case e.Time.IsZero():
		case e.Type == result.ConnectionCheckOutStarted:
			open[e.Address] = append(started, e.Time)
		case (e.Type == result.ConnectionCheckedOut || e.Type == result.ConnectionCheckOutFailed) && len(started) > 0:
			sum += result.Duration(e.Time.Sub(started[0]))
			open[e.Address] = started[1:]
		}
	}
	return sum
}
