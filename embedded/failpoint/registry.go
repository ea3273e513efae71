// Package failpoint decides whether a server fails a command, and how: the
// fail points that configureFailPoint sets on one server, their modes and
// counts, and the reading of failCommand's data. It does no I/O, keeps no
// clock, and takes its randomness as a value.
package failpoint

import (
	"math"
	"sync"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/command"
	"github.com/unified-test-runner/utr/embedded/data/value"
)

// Registry holds the fail points of one server, or the one that belongs to a
// deployment. Its methods may be called concurrently.
type Registry struct {
	mu     sync.Mutex
	points map[string]*point
	random func() float64
}

// NewRegistry makes the registry of a server, in which every fail point is off. random
// gives numbers in [0, 1), for activationProbability; it is called by one goroutine
// at a time.
func NewRegistry(random func() float64) *Registry {
	r := &Registry{points: map[string]*point{}, random: random}
	for _, k := range kinds {
		r.points[k.name] = &point{effect: effect{kind: k}}
	}
	return r
}

// NewSequence makes the registry of a deployment, which has FailCommandSequence alone.
func NewSequence() *Registry {
	return &Registry{points: map[string]*point{FailCommandSequence: {effect: effect{kind: sequence}}}}
}

// point is one fail point: its mode, and how often it has struck.
type point struct {
	mode        mode
	left        int64   // of the times, or to skip
	probability float64 // in mode random
	effect      effect
	next        int // of the elements of a sequence
	count       int32
}

// mode is one of the server's modes, by its number there.
type mode int32

const (
	off mode = iota
	alwaysOn
	random
	times
	skip
)

// Configure carries out a configureFailPoint command. It gives how often the
// fail point had struck before, or an error in the server's words.
func (r *Registry) Configure(request bson.Raw) (int32, error) {
	name, _ := request.Index(0).Value().StringValueOK()
	r.mu.Lock()
	defer r.mu.Unlock()
	old, ok := r.points[name]
	if !ok {
		return 0, command.Errorf(command.CodeFailPointSetFailed, "%s not found", name)
	}
	next, err := parseMode(request)
	if err != nil {
		return 0, err
	}
	data, _ := request.Lookup("data").DocumentOK()
	next.effect = old.effect.kind.read(data)
	next.count = old.count
	if name == FailCommandSequence && next.mode != off {
		if err := next.effect.readSequence(next.mode); err != nil {
			return 0, err
		}
	}
	r.points[name] = &next
	return old.count, nil
}

// parseMode reads the mode of a configureFailPoint command.
func parseMode(request bson.Raw) (point, error) {
	given, err := request.LookupErr("mode")
	if err != nil {
		return point{}, command.Errorf(command.CodeIllegalOperation, "When setting a failpoint, you must supply a 'mode'")
	}
	if name, ok := given.StringValueOK(); ok {
		switch name {
		case "off":
			return point{mode: off}, nil
		case "alwaysOn":
			return point{mode: alwaysOn}, nil
		}
		return point{}, command.Errorf(command.CodeBadValue, "unknown mode: %s", name)
	}
	doc, ok := given.DocumentOK()
	if !ok {
		return point{}, command.Errorf(command.CodeTypeMismatch, "'mode' must be a string or JSON object")
	}
	first, err := doc.IndexErr(0)
	name, v := "", bson.RawValue{}
	if err == nil {
		name, v = first.Key(), first.Value()
	}
	switch name {
	case "times":
		n, err := count(name, v)
		// One strike is the least: {times: 0} fails the next command.
		return point{mode: times, left: max(n, 1)}, err
	case "skip":
		n, err := count(name, v)
		return point{mode: skip, left: n}, err
	case "activationProbability":
		p, ok := v.AsFloat64OK()
		switch {
		case !ok:
			err = command.Errorf(command.CodeTypeMismatch, "the value of 'activationProbability' must be a number, found %s", command.TypeName(v))
		case !(p >= 0 && p <= 1):
			err = command.Errorf(command.CodeBadValue, "activationProbability must be between 0.0 and 1.0; found %s", value.Text(p))
		}
		return point{mode: random, probability: p}, err
	}
	return point{}, command.Errorf(command.CodeBadValue,
		"'mode' must be one of 'off', 'alwaysOn', '{times:n}', '{skip:n}' or '{activationProbability:p}'")
}

func count(name string, v bson.RawValue) (int64, error) {
	n, ok := v.AsInt64OK()
	switch {
	case !ok:
		return 0, command.Errorf(command.CodeTypeMismatch, "Expected field %q to have numeric type, but found %s", name, command.TypeName(v))
	case n < 0:
		return 0, command.Errorf(command.CodeBadValue, "'%s' option to 'mode' must be positive", name)
	case n > math.MaxInt32:
		return 0, command.Errorf(command.CodeBadValue, "'%s' option to 'mode' is too large", name)
	}
	return n, nil
}

// strike asks whether the named fail point strikes. A fail point that is on, and
// that accept returns true for, counts a hit if its mode lets it strike. Without a
// hit the effect is zero.
func (r *Registry) strike(name string, accept func(*effect) bool) (effect, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.points[name]
	if p == nil || p.mode == off || !accept(&p.effect) {
		return effect{}, false
	}
	switch p.mode {
	case times:
		if p.left--; p.left == 0 {
			p.mode = off
		}
	case skip:
		if p.left > 0 {
			p.left--
			return effect{}, false
		}
	case random:
		if r.random() >= p.probability {
			return effect{}, false
		}
	}
	p.count++
	return p.effect, true
}

// Names are those of the fail points that a server has, and of the deployment's.
func Names() []string {
	names := []string{FailCommandSequence}
	for _, k := range kinds {
		names = append(names, k.name)
	}
	return names
}

// State is the named fail point as getParameter returns it: its mode (0 off, 1 alwaysOn, 2 random,
// 3 times, 4 skip), the data of its configuration, and how often it has struck.
func (r *Registry) State(name string) bson.D {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.points[name]
	data := p.effect.data
	if len(data) == 0 {
		data = bson.Raw{5, 0, 0, 0, 0}
	}
	return bson.D{{Key: "mode", Value: int32(p.mode)}, {Key: "data", Value: data}, {Key: "timesEntered", Value: p.count}}
}
