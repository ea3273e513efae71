package report

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/unified-test-runner/utr/result"
)

// Earlier is what trends need of the report of an earlier run: when it was,
// how long it took, and how each test ended. It takes some tens of bytes for a
// test, however much the report tells of it.
type Earlier struct {
	name     string
	began    time.Time
	duration time.Duration
	counts   [6]int // by pageStatuses
	statuses map[testHash]uint8
}

// testHash stands for a verdictKey, in a few bytes.
type testHash [16]byte

func hashOf(k verdictKey) (h testHash) {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%s\x00%s\x00%s\x00%d\x00%d", k.cell, k.file, k.description, k.deployment, k.iteration, k.repeat))
	copy(h[:], sum[:])
	return h
}

// claim gives the hash of a test, as the first of its name that is not taken.
func claim[T any](k verdictKey, taken map[testHash]T) testHash {
	k.iteration = max(1, k.iteration)
	for {
		h := hashOf(k)
		if _, found := taken[h]; !found {
			return h
		}
		k.repeat++
	}
}

// ReadEarlier reads a JSON report of an earlier run, which may be one of
// another version of utr. written is when the run was if its report does not
// tell.
func ReadEarlier(name string, from io.Reader, written time.Time) (*Earlier, error) {
	e := &Earlier{name: name, statuses: map[testHash]uint8{}}
	lines := bufio.NewReader(from)
	var span span
	for n := 1; ; n++ {
		line, err := lines.ReadBytes('\n')
		if err != nil && err != io.EOF {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if line := bytes.TrimSpace(line); len(line) > 0 {
			if err := e.add(line, &span); err != nil {
				return nil, fmt.Errorf("%s:%d: no record of a test: %w", name, n, err)
			}
		}
		if err == io.EOF {
			break
		}
	}
	if e.began = span.first; e.began.IsZero() {
		e.began = written
	}
	e.duration = span.duration()
	return e, nil
}

// Tests is how many verdicts the report has.
func (e *Earlier) Tests() int { return len(e.statuses) }

// span is the time of a run as its records tell it.
type span struct {
	first, last time.Time
	sum, told   time.Duration // of all tests; of the run
}

// add takes a test in, of which nobody may know when it began.
func (s *span) add(began time.Time, took time.Duration) {
	s.sum += took
	if began.IsZero() {
		return
	}
	if s.first.IsZero() || began.Before(s.first) {
		s.first = began
	}
	if end := began.Add(took); end.After(s.last) {
		s.last = end
	}
}

// duration is what the run took, as far as is known.
func (s *span) duration() time.Duration {
	switch {
	case s.told > 0:
		return s.told
	case s.first.IsZero():
		return s.sum
	}
	return s.last.Sub(s.first)
}

func (e *Earlier) add(line []byte, s *span) error {
	var r struct {
		File, Test, Deployment, Cell string
		Iteration                    int
		Status                       result.Status
		Time                         time.Time
		DurationMS                   float64
		Run                          *struct {
			Time       time.Time
			DurationMS float64
		}
	}
	if err := json.Unmarshal(line, &r); err != nil {
		return err
	}
	if r.Run != nil {
		if !r.Run.Time.IsZero() && (s.first.IsZero() || r.Run.Time.Before(s.first)) {
			s.first = r.Run.Time
		}
		s.told = max(s.told, fromMilliseconds(r.Run.DurationMS))
		return nil
	}
	status := slices.Index(pageStatuses(), r.Status)
	if status < 0 {
		return fmt.Errorf("the status is %q", r.Status)
	}
	s.add(r.Time, fromMilliseconds(r.DurationMS))
	e.counts[status]++
	e.statuses[claim(verdictKey{cell: r.Cell, file: r.File, description: r.Test, deployment: r.Deployment, iteration: r.Iteration}, e.statuses)] = uint8(status)
	return nil
}

// mostEarlier is how many earlier runs a page shows: the last ones.
const mostEarlier = 16

// trends are earlier runs, oldest first.
type trends struct {
	runs []*Earlier
	seen map[testHash]struct{} // tests of this run
}

func newTrends(runs []*Earlier) *trends {
	runs = slices.Clone(runs)
	slices.SortStableFunc(runs, func(a, b *Earlier) int { return a.began.Compare(b.began) })
	return &trends{runs: runs[max(0, len(runs)-mostEarlier):], seen: map[testHash]struct{}{}}
}

// history tells how a test ended in the earlier runs: the number of its status
// for each, or a minus.
func (t *trends) history(id result.TestID) string {
	h := claim(verdictKey{cell: id.Cell, file: id.File, description: id.Description, deployment: id.Deployment, iteration: id.Iteration}, t.seen)
	t.seen[h] = struct{}{}
	var s strings.Builder
	for _, r := range t.runs {
		if status, found := r.statuses[h]; found {
			s.WriteByte('0' + status)
		} else {
			s.WriteByte('-')
		}
	}
	return s.String()
}

// gone counts the tests of the last run that this one does not have.
func (t *trends) gone() (n int) {
	for h := range t.runs[len(t.runs)-1].statuses {
		if _, found := t.seen[h]; !found {
			n++
		}
	}
	return n
}
