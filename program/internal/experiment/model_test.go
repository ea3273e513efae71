package experiment

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// outcomeOf is the verdict of a request and its time.
type outcomeOf struct {
	at  time.Duration
	how verdict
}

// driven runs the server with requests that arrive at given times, as the simulation
// does.
func driven(s *server, arrivals []time.Duration) []outcomeOf {
	var a agenda
	out := make([]outcomeOf, len(arrivals))
	for i, at := range arrivals {
		a.plan(at, func() { s.arrive(request{try: i}) })
	}
	finish := func() {
		if r, v := s.finish(a.now); v != nothing {
			out[r.try] = outcomeOf{a.now, v}
		}
	}
	for a.Len() > 0 {
		a.next()
		if takes, ok := s.work(); ok {
			a.plan(takes, finish)
		}
	}
	return out
}

// plodding is the same server without events: it simulates every nanosecond with plain
// lists and counts tokens in integers.
func plodding(judging, serving, limit, every, burst int, arrivals []time.Duration) []outcomeOf {
	out := make([]outcomeOf, len(arrivals))
	var door, queue []int
	doing, left, atDoor, open := -1, 0, false, len(arrivals)
	parts := burst * every // every parts are a token; one part is added per nanosecond
	for now := 0; open > 0; now++ {
		if now > 0 {
			parts = min(parts+1, burst*every)
		}
		// All arrivals were planned first, so they precede the end of processing.
		for i, at := range arrivals {
			if int(at) == now {
				door = append(door, i)
			}
		}
		for {
			if doing >= 0 && left == 0 {
				switch {
				case !atDoor:
					out[doing], open = outcomeOf{time.Duration(now), served}, open-1
				case len(queue) >= limit, every > 0 && parts < every:
					out[doing], open = outcomeOf{time.Duration(now), rejected}, open-1
				default:
					parts -= every
					queue = append(queue, doing)
				}
				doing = -1
			}
			if doing < 0 && len(door) > 0 {
				doing, door, left, atDoor = door[0], door[1:], judging, true
			} else if doing < 0 && len(queue) > 0 {
				doing, queue, left, atDoor = queue[0], queue[1:], serving, false
			}
			if doing < 0 || left > 0 {
				break
			}
		}
		if doing >= 0 {
			left--
		}
	}
	return out
}

func TestServerAgainstNaiveTwin(t *testing.T) {
	chance := rand.New(rand.NewPCG(7, 7))
	seen := map[verdict]int{}
	for round := range 3000 {
		judging, serving := chance.IntN(4), 1+chance.IntN(6)
		limit, burst := 1+chance.IntN(4), 1+chance.IntN(3)
		// Rates whose tokens a float64 counts exactly.
		every := []int{0, 1, 2, 4, 8, 16}[chance.IntN(6)]
		arrivals := make([]time.Duration, 1+chance.IntN(12))
		for i := range arrivals {
			arrivals[i] = time.Duration(chance.IntN(30))
		}
		slices.Sort(arrivals)
		s := &server{judging: time.Duration(judging), serving: time.Duration(serving), limit: limit}
		if every > 0 { // a little more, because a rate per second is not exact
			s.bucket = &bucket{rate: 1e9 / float64(every), burst: float64(burst) + 1e-9, tokens: float64(burst) + 1e-9}
		}
		got, want := driven(s, arrivals), plodding(judging, serving, limit, every, burst, arrivals)
		if !slices.Equal(got, want) {
			t.Fatalf("round %d: judging %d, serving %d, limit %d, a token every %d, burst %d, arrivals %v:\n got %v\nwant %v",
				round, judging, serving, limit, every, burst, arrivals, got, want)
		}
		for _, o := range got {
			seen[o.how]++
		}
	}
	if seen[served] < 1000 || seen[rejected] < 1000 {
		t.Errorf("the rounds do not cover enough: %v", seen)
	}
}
