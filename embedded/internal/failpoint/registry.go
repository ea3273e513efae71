// Package failpoint decides whether and how a server fails a command: the fail points that configureFailPoint sets,
// their modes, counts and data. It does no I/O and reads no clock; its random source is a parameter.
package failpoint

import (
	"cmp"
	"math"
	"slices"
	"sync"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/internal/fault"
	"github.com/unified-test-runner/utr/embedded/internal/value"
)

// Registry contains the fail points of a server, or of a deployment. Its methods may be called concurrently.
type Registry struct {
	mu         sync.Mutex
	points     map[string]*point
	random     func() float64
	deployment *Registry     // has FailCommandSequence
	change     chan struct{} // closed when a fail point is configured
}

// NewRegistry creates a registry with the named fail points, or all, which are off. FailCommandSequence is the
// deployment's; nil creates the registry of a deployment. random returns numbers in [0, 1) for activationProbability.
// It is called by one goroutine at a time.
func NewRegistry(random func() float64, deployment *Registry, names ...string) *Registry {
	r := &Registry{points: map[string]*point{}, random: random, change: make(chan struct{})}
	r.deployment = cmp.Or(deployment, r)
	for _, k := range kinds {
		if len(names) == 0 || slices.Contains(names, k.name) {
			r.points[k.name] = &point{effect: effect{kind: k}}
		}
	}
	return r
}

type point struct {
	mode        mode
	remaining   int64   // commands left in mode times or skip
	probability float64 // of mode random
	effect      effect
	next        int   // index of the next element of a sequence
	count       int32 // hits
	entered     int64 // hits since it was configured
}

// of returns the registry with a fail point.
func (r *Registry) of(name string) *Registry {
	if name == FailCommandSequence {
		return r.deployment
	}
	return r
}

// mode is a mode, numbered as on the server.
type mode int32

const (
	off mode = iota
	alwaysOn
	random
	times
	skip
)

// Configure executes a configureFailPoint command. It returns the number of previous hits, or the server's error.
func (r *Registry) Configure(request bson.Raw) (int32, error) {
	name, _ := request.Index(0).Value().StringValueOK()
	r = r.of(name)
	r.mu.Lock()
	defer r.mu.Unlock()
	old, ok := r.points[name]
	if !ok {
		return 0, fault.Errorf(fault.FailPointSetFailed, "%s not found", name)
	}
	next, err := parseMode(request)
	if err != nil {
		return 0, err
	}
	next.effect = old.effect.kind.read(value.DocAt(request, "data"))
	next.count = old.count
	if name == FailCommandSequence && next.mode != off {
		if err := next.effect.readSequence(next.mode); err != nil {
			return 0, err
		}
	}
	r.points[name] = &next
	close(r.change)
	r.change = make(chan struct{})
	return old.count, nil
}

func parseMode(request bson.Raw) (point, error) {
	given, err := request.LookupErr("mode")
	if err != nil {
		return point{}, fault.Errorf(fault.IllegalOperation, "When setting a failpoint, you must supply a 'mode'")
	}
	if name, ok := given.StringValueOK(); ok {
		m, known := map[string]mode{"off": off, "alwaysOn": alwaysOn}[name]
		if !known {
			return point{}, fault.Errorf(fault.BadValue, "unknown mode: %s", name)
		}
		return point{mode: m}, nil
	}
	doc, ok := given.DocumentOK()
	if !ok {
		return point{}, fault.Errorf(fault.TypeMismatch, "'mode' must be a string or JSON object")
	}
	name, v := "", bson.RawValue{}
	if first, err := doc.IndexErr(0); err == nil {
		name, v = first.Key(), first.Value()
	}
	switch name {
	case "times":
		n, err := count(name, v)
		return point{mode: times, remaining: max(n, 1)}, err // {times: 0} fails one command, as on the server
	case "skip":
		n, err := count(name, v)
		return point{mode: skip, remaining: n}, err
	case "activationProbability":
		p, ok := v.AsFloat64OK()
		switch {
		case !ok:
			err = fault.Errorf(fault.TypeMismatch,
				"the 'activationProbability' option to 'mode' must be a double between 0 and 1")
		case !(p >= 0 && p <= 1):
			err = fault.Errorf(fault.BadValue, "activationProbability must be between 0.0 and 1.0; found %s", value.Text(p))
		}
		return point{mode: random, probability: p}, err
	}
	return point{}, fault.Errorf(fault.BadValue,
		"'mode' must be one of 'off', 'alwaysOn', '{times:n}', '{skip:n}' or '{activationProbability:p}'")
}

func count(name string, v bson.RawValue) (int64, error) {
	_, isNumber := v.AsInt64OK()
	given := value.FromRaw(v)
	n, whole := value.Int64(given)
	switch {
	case !isNumber:
		return 0, fault.Errorf(fault.TypeMismatch, "Expected field %q to have numeric type, but found %s", name,
			value.RawTypeName(v))
	case !whole:
		return 0, fault.Errorf(fault.BadValue,
			"Expected field %q to have a value exactly representable as a 64-bit integer, but found %s: %s",
			name, name, value.Text(given))
	case n < 0:
		return 0, fault.Errorf(fault.BadValue, "'%s' option to 'mode' must be positive", name)
	case n > math.MaxInt32:
		return 0, fault.Errorf(fault.BadValue, "'%s' option to 'mode' is too large", name)
	}
	return n, nil
}

// hit reports whether a command hits the named fail point, counts the hit, and returns the effect. Only fail points
// that accept approves are evaluated.
func (r *Registry) hit(name string, c Command, accept func(*effect) bool) (Failure, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.points[name]
	if p == nil || p.mode == off || !p.effect.appliesTo(c) || !accept(&p.effect) {
		return Failure{}, false
	}
	switch p.mode {
	case times:
		if p.remaining--; p.remaining == 0 {
			p.mode = off
		}
	case skip:
		if p.remaining > 0 {
			p.remaining--
			return Failure{}, false
		}
	case random:
		if r.random() >= p.probability {
			return Failure{}, false
		}
	}
	p.count++
	p.entered++
	return p.effect.failure, true
}

// On reports whether the named fail point is on, without a hit. The channel is closed when a fail point is configured.
func (r *Registry) On(name string) (bool, <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.points[name].mode != off, r.change
}

// Names returns the names of all fail points.
func Names() (names []string) {
	for _, k := range kinds {
		names = append(names, k.name)
	}
	return names
}

// State returns the named fail point as getParameter shows it: its mode (0 off, 1 alwaysOn, 2 random, 3 times,
// 4 skip), its data, and the number of hits.
func (r *Registry) State(name string) bson.D {
	r = r.of(name)
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.points[name]
	var data any = p.effect.data
	if len(p.effect.data) == 0 {
		data = bson.D{}
	}
	return value.Doc("mode", int32(p.mode), "data", data, "timesEntered", p.entered)
}
