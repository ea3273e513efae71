package data

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/command"
	"github.com/unified-test-runner/utr/embedded/data/query"
	"github.com/unified-test-runner/utr/embedded/data/value"
)

// search returns the records that match, at most limit of them (0: all). If c is not nil, search looks up the _id that
// the filter requires, and the caller holds mu.
func search(c *collection, records []*record, f *query.Filter, limit int64) ([]*record, error) {
	if id, ok := f.ID(); ok && c.findsByID() {
		records = nil
		if r := c.byID(id); r != nil {
			records = []*record{r}
		}
	}
	return query.Select(f, records, (*record).document, limit)
}

// recordsOf returns the records of a collection or a view; with at, those of a collection at that time. depth is the
// number of enclosing views.
func (s *scope) recordsOf(db, name string, at *bson.Timestamp, depth int) ([]*record, error) {
	c, records := s.records(db, name)
	switch {
	case depth > 20:
		return nil, command.Errorf(command.CodeViewDepthLimitExceeded, "View depth too deep")
	case c != nil && c.isView():
		docs, err := c.pipeline.Run(host{s, db, c.view}, func() ([]bson.D, error) { return s.documentsOf(db, c.view, nil, depth+1) })
		records := make([]*record, len(docs))
		for i, doc := range docs {
			records[i] = &record{raw: value.Encode(doc), doc: doc}
		}
		return records, err
	case at != nil:
		return s.d.history(db, name, records, *at)
	}
	return records, nil
}

func (s *scope) documentsOf(db, name string, at *bson.Timestamp, depth int) ([]bson.D, error) {
	records, err := s.recordsOf(db, name, at, depth)
	return documentsIn(records), err
}

// documents returns the documents of a collection or a view that match a filter, or all if it is nil.
func (s *scope) documents(name string, hint any, at *bson.Timestamp, f *query.Filter) ([]bson.D, error) {
	if _, err := s.hinted(name, hint); err != nil {
		return nil, err
	}
	docs, err := s.documentsOf(s.req.DB, name, at, 0)
	if err != nil {
		return nil, err
	}
	return f.Select(docs)
}

// hinted returns a collection or view, or nil, and checks the hint.
func (s *scope) hinted(name string, hint any) (c *collection, err error) {
	s.d.reading(func() {
		c = s.collection(s.req.DB, name)
		err = hintExists(c, hint)
	})
	return c, err
}

// hintExists returns an error if a hint does not name an index.
func hintExists(c *collection, hint any) error {
	_, isName := hint.(string)
	key, isKey := hint.(bson.D)
	natural := hint == any("$natural") || isKey && (len(key) == 0 || key[0].Key == "$natural")
	switch {
	case c == nil, hint == nil, natural, c.index(hint) != nil:
		return nil
	case !isName && !isKey:
		return command.Errorf(command.CodeFailedToParse, "Failed to parse: hint must be a string or an object")
	}
	return command.Errorf(command.CodeBadValue, "error processing query: ns=%s planner returned error :: caused by :: hint provided does not correspond to an existing index", c.ns())
}

// history returns the records of a collection at an earlier time: the current records with later writes undone.
func (d *Data) history(db, name string, records []*record, at bson.Timestamp) ([]*record, error) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	if at.Compare(d.oplog.from) < 0 {
		return nil, command.Errorf(command.CodeSnapshotTooOld, "Read timestamp %s is older than the oldest available timestamp.", value.Text(at))
	}
	byRID := map[int64]*record{}
	for _, r := range records {
		byRID[r.rid] = r
	}
	for _, e := range slices.Backward(d.oplog.entries) {
		if e.ts.Compare(at) <= 0 {
			break
		}
		if e.db != db || e.coll != name {
			continue
		}
		switch e.kind {
		case opInsert:
			delete(byRID, e.new.rid)
		case opUpdate, opReplace, opDelete:
			byRID[e.old.rid] = e.old
		case opCreate, opDrop, opRename, opDropDatabase:
			return nil, command.Errorf(command.CodeSnapshotUnavailable, "Unable to read from a snapshot due to pending collection catalog changes")
		}
	}
	return slices.SortedFunc(maps.Values(byRID), func(a, b *record) int { return cmp.Compare(a.rid, b.rid) }), nil
}

// scripts returns the environment of $where in the filters of the command.
func (s *scope) scripts() *query.Scripts {
	return &query.Scripts{Disabled: s.d.opts.NoScripting, Sleep: s.sleep, Stopped: s.stopped}
}

// rehearse runs the scripts of a write without the lock, because they may sleep. With the lock, sleep does nothing.
func (s *scope) rehearse(w *write) error {
	if !w.filter.Scripted() {
		return nil
	}
	_, records := s.records(w.db, w.coll)
	_, err := search(nil, records, w.filter, w.limit())
	s.slept = true
	return err
}

func timedOut() error {
	return command.Errorf(command.CodeMaxTimeMSExpired, "operation exceeded time limit")
}
func interrupted() error { return command.Errorf(command.CodeInterrupted, "operation was interrupted") }

// stopped returns an error if the time limit of the command has expired or the command was interrupted.
func (s *scope) stopped() error {
	if !s.deadline.IsZero() && !time.Now().Before(s.deadline) {
		return timedOut()
	}
	if s.req.Context.Err() != nil {
		return interrupted()
	}
	return nil
}

// sleep sleeps, at most until the time limit of the command expires or the command is interrupted.
func (s *scope) sleep(d time.Duration) error {
	if s.slept {
		return nil
	}
	if !s.deadline.IsZero() {
		d = min(d, time.Until(s.deadline))
	}
	select {
	case <-time.After(d):
	case <-s.req.Context.Done():
	}
	return s.stopped()
}

// deadline returns the time at which maxTimeMS expires, or zero without it.
func deadline(req *command.Request) (t time.Time) {
	v, _ := value.FromRaw(req.Body.Lookup("maxTimeMS"))
	if ms, _ := value.Int64(v); ms > 0 {
		t = time.Now().Add(time.Duration(ms) * time.Millisecond)
	}
	return t
}
