package data

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// sleepers are commands with the filter sleep(20) || true on two documents.
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
	b.must(`{"insert":"c","documents":[{"_id":1,"a":1},{"_id":2,"a":1}]}`)
	return b
}

func TestSleepInWhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, doc := range sleepers() {
			b := sleepy(t, Options{})
			began := time.Now()
			b.must(doc)
			if d := time.Since(began); d != 40*time.Millisecond {
				t.Errorf("%s: two documents took %v, want 40 ms", name, d)
			}
			if n := b.must(`{"count":"c","query":{"a":2}}`)[0].Value; name == "update" && n != int32(2) {
				t.Errorf("an update that slept twice has changed %v documents once", n)
			}
		}
	})
}

func TestSleepEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		for name, doc := range sleepers() {
			if name == "bulkWrite" {
				continue // which reports the error in its cursor
			}
			for _, row := range []struct {
				reason, doc string
				options     Options
				ctx         context.Context
				code        int32
			}{
				{"on a connection that is closed", doc, Options{}, ended, 11601},
				{"with maxTimeMS", doc[:len(doc)-1] + `,"maxTimeMS":1}`, Options{}, t.Context(), 50},
				{"without scripts", doc, Options{NoScripting: true}, t.Context(), 2},
			} {
				b := sleepy(t, row.options)
				b.ctx = row.ctx
				began := time.Now()
				if c := b.code(row.doc); c != row.code || time.Since(began) > time.Millisecond {
					t.Errorf("%s %s: code %d, want %d, after %v", name, row.reason, c, row.code, time.Since(began))
				}
			}
		}
	})
}

// TestSleepHoldsNoLock has others go on while a write sleeps.
func TestSleepHoldsNoLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := sleepy(t, Options{})
		ctx, cancel := context.WithCancel(t.Context())
		slow := *b
		slow.ctx = ctx
		var wait sync.WaitGroup
		wait.Go(func() {
			_ = slow.code(`{"update":"c","updates":[{"q":{"$where":"sleep(600000)"},"u":{"$inc":{"a":1}}}]}`)
		})
		synctest.Wait()
		began := time.Now()
		b.must(`{"insert":"c","documents":[{"a":1}]}`)
		b.d.OperationTime()
		if time.Since(began) != 0 {
			t.Errorf("others waited %v", time.Since(began))
		}
		cancel()
		wait.Wait()
	})
}
