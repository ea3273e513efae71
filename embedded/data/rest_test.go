package data

import (
	"context"
	"sync"
	"testing"
	"time"
)

// Commands with the filter sleep(20) || true on two documents.
func sleepers() map[string]string {
	const filter = `{"$where":"sleep(20) || true"}`
	return map[string]string{
		"find":          `{"find":"c","filter":` + filter + `}`,
		"count":         `{"count":"c","query":` + filter + `}`,
		"distinct":      `{"distinct":"c","key":"a","query":` + filter + `}`,
		"update":        `{"update":"c","updates":[{"q":` + filter + `,"u":{"$inc":{"a":1}},"multi":true}]}`,
		"delete":        `{"delete":"c","deletes":[{"q":` + filter + `,"limit":0}]}`,
		"findAndModify": `{"findAndModify":"c","query":` + filter + `,"sort":{"_id":1},"update":{"$inc":{"a":1}}}`,
		"bulkWrite":     `{"bulkWrite":1,"ops":[{"delete":0,"filter":` + filter + `,"multi":true}],"nsInfo":[{"ns":"db.c"}]}`,
	}
}

func sleepy(t *testing.T, o Options) *bench {
	b := newBench(t, o)
	if _, err := b.do(`{"insert":"c","documents":[{"_id":1,"a":1},{"_id":2,"a":1}]}`); err != nil {
		t.Fatal(err)
	}
	return b
}

func TestSleepInWhere(t *testing.T) {
	for name, doc := range sleepers() {
		b := sleepy(t, Options{})
		began := time.Now()
		if _, err := b.do(doc); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if d := time.Since(began); d < 40*time.Millisecond {
			t.Errorf("%s: two documents took %v, want 40 ms or more", name, d)
		}
	}
	b := sleepy(t, Options{})
	if _, err := b.do(sleepers()["update"]); err != nil {
		t.Fatal(err)
	}
	got, err := b.do(`{"count":"c","query":{"a":2}}`)
	if err != nil || got[0].Value != int32(2) {
		t.Errorf("an update that slept twice must change each document once: %v, %v", got, err)
	}
}

func TestSleepEnds(t *testing.T) {
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	for name, doc := range sleepers() {
		b := sleepy(t, Options{})
		b.ctx = ended
		if c := b.code(doc); name != "bulkWrite" && c != 11601 {
			t.Errorf("%s on a connection that is closed: code %d, want 11601", name, c)
		}
		b = sleepy(t, Options{})
		if c := b.code(doc[:len(doc)-1] + `,"maxTimeMS":1}`); name != "bulkWrite" && c != 50 {
			t.Errorf("%s with maxTimeMS: code %d, want 50", name, c)
		}
		b = sleepy(t, Options{NoScripting: true})
		if c := b.code(doc); name != "bulkWrite" && c != 2 {
			t.Errorf("%s without scripts: code %d, want 2", name, c)
		}
	}
}

// Others go on while a write sleeps.
func TestSleepHoldsNoLock(t *testing.T) {
	b := sleepy(t, Options{})
	ctx, cancel := context.WithCancel(context.Background())
	slow := *b
	slow.ctx = ctx
	var wait sync.WaitGroup
	wait.Go(func() {
		_ = slow.code(`{"update":"c","updates":[{"q":{"_id":1},"u":{"$set":{"began":1}}},` +
			`{"q":{"$where":"sleep(600000)"},"u":{"$inc":{"a":1}}}]}`)
	})
	for n := any(int32(0)); n != int32(1); { // the test's own deadline ends it
		n = b.must(`{"count":"c","query":{"began":1}}`)[0].Value
	}
	for range 100 {
		b.must(`{"insert":"c","documents":[{"a":1}]}`)
		b.d.OperationTime()
	}
	cancel()
	wait.Wait()
}
