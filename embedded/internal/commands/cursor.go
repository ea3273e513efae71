package commands

import (
	"cmp"
	"context"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/internal/failpoint"
	"github.com/unified-test-runner/utr/embedded/internal/fault"
	"github.com/unified-test-runner/utr/embedded/internal/store"
	"github.com/unified-test-runner/utr/embedded/internal/value"
)

const (
	firstBatch = 101
	awaitTime  = time.Second
)

// source has the documents of a cursor.
type source interface {
	// batch returns up to n available documents (-1: as many as fit) and whether the cursor is exhausted. After an
	// error it must not be called again.
	batch(n int64) (docs []bson.Raw, done bool, err error)
	// extra returns further fields of the cursor in a reply.
	extra() bson.D
}

// results is a source of documents that were found when the cursor was opened.
type results struct {
	docs []bson.Raw
	// known means that the cursor is exhausted with the last document. A server that scans finds this out only when it
	// looks for another one.
	known bool
	at    bson.D
	later func() ([]bson.Raw, error) // finds the documents at the first batch that is not empty; nil: they are found
}

func (l *results) batch(n int64) (docs []bson.Raw, done bool, err error) {
	if l.later != nil && n != 0 {
		if l.docs, err = l.later(); err != nil {
			return nil, true, err
		}
		l.later = nil
	}
	docs, l.docs = take(l.docs, n)
	return docs, len(l.docs) == 0 && (n < 0 || l.known || int64(len(docs)) < n), nil
}

func (l *results) extra() bson.D { return l.at }

// take splits off a batch of up to n documents (-1: no limit) that fits into a reply.
func take(docs []bson.Raw, n int64) (batch, rest []bson.Raw) {
	size := 0
	for i, d := range docs {
		size += len(d)
		if n >= 0 && int64(i) >= n || i > 0 && size > store.MaxDocument {
			return docs[:i:i], docs[i:]
		}
	}
	return docs, nil
}

type cursorOptions struct {
	size      int64 // of the first batch
	single    bool  // only one batch
	await     bool  // getMore waits for data
	idFirst   bool  // id and ns precede the batch in the reply
	openFirst bool  // the same, if the cursor stays open
}

// open returns a reply with the first batch of a source and registers the cursor unless it is exhausted.
func (s *call) open(ns string, src source, o cursorOptions) (bson.D, error) {
	docs, done, err := src.batch(o.size)
	if err != nil {
		return nil, err
	}
	c := &cursor{ns: ns, source: src, server: address(s.req), session: store.SessionKey(s.req.LSID), txn: -1,
		api: s.req.API, work: s.Work, killed: make(chan struct{}), await: o.await, noTimeout: s.noTimeout, used: time.Now()}
	if s.InTransaction() {
		c.txn = s.TxnNumber()
	}
	if !s.Deadline.IsZero() {
		c.left = time.Until(s.Deadline)
	}
	extra := src.extra()
	if !done && !o.single {
		s.d.cursors.keep(c)
	}
	return cursorReply(c.id, ns, "firstBatch", docs, extra, o.idFirst || o.openFirst && c.id != 0), nil
}

// cursorReply returns the reply with a batch, with the fields in the server's order.
func cursorReply(id int64, ns, key string, docs []bson.Raw, extra bson.D, idFirst bool) bson.D {
	if docs == nil {
		docs = []bson.Raw{}
	}
	head, batch := value.Doc("id", id, "ns", ns), value.Doc(key, docs)
	if len(extra) > 0 && extra[0].Key == "postBatchResumeToken" {
		batch, extra = append(batch, extra...), nil
	}
	if !idFirst {
		head, batch = batch, head
	}
	return value.Doc("cursor", slices.Concat(head, batch, extra))
}

// list returns the reply with a cursor over complete results.
func (s *call) list(ns string, docs []bson.Raw, size int64) bson.D {
	// results do not fail
	reply, _ := s.open(ns, &results{docs: docs, known: true}, cursorOptions{size: size, idFirst: true})
	return reply
}

func (s *call) notFound(id int64, ns string) error {
	if mongos(s.req) {
		return fault.Errorf(fault.CursorNotFound, "Cursor not found (namespace: '%s', id: %d).", ns, id)
	}
	return fault.Errorf(fault.CursorNotFound, "cursor id %d not found", id)
}

func getMore(s *call, a *args) action {
	id := a.number("getMore", 0)
	coll, size, d := a.str("collection"), a.number("batchSize", -1), s.d
	wait, limited := awaitTime, false
	if ms := a.number("maxTimeMS", 0); ms > 0 || a.any("maxTimeMS") != nil && s.has.GetMoreLimits {
		wait, limited = time.Duration(ms)*time.Millisecond, true
	}
	a.Refuse(coll == "", fault.InvalidNamespace, "Collection names cannot be empty")
	if size == 0 {
		size = -1
	}
	return func() (bson.D, error) {
		c, err := d.cursors.checkOut(s, id, s.req.DB+"."+coll, limited)
		if err != nil {
			return nil, err
		}
		ended := true // on an error
		defer func() { d.cursors.checkIn(c, ended) }()
		s.out.IsChangeStream = c.isStream()
		if f, hit := s.req.FailPoint(failpoint.FailGetMoreAfterCursorCheckout); hit {
			return nil, fault.Errorf(f.Code, "Hit the '%s' failpoint", failpoint.FailGetMoreAfterCursorCheckout)
		}
		if err := s.resume(c); err != nil {
			return nil, err
		}
		docs, done, err := d.next(s.req.Context, c, size, wait)
		if ended = done; err != nil {
			return nil, s.onShardHost(c, err)
		}
		if done {
			id = 0
		} else if s.req.ExhaustAllowed && (!mongos(s.req) || s.has.ExhaustOnMongos) {
			s.out.Stream = func() (Response, error) {
				next, err := s.req.Row.Parse(s.req)
				if err != nil {
					return Response{}, err
				}
				return next()
			}
		}
		return cursorReply(id, c.ns, "nextBatch", docs, c.source.extra(), mongos(s.req)), nil
	}
}

// resume continues the time limit of the command that opened the cursor, unless the cursor awaits data. The work of
// that command goes on for the getMore.
func (s *call) resume(c *cursor) (err error) {
	if c.left != 0 && !c.await {
		s.Deadline = limit(s.req, c.left)
		err = Expired(s.req, false)
	}
	c.work.Context, c.work.Deadline = s.Context, s.Deadline
	return err
}

// next returns the next batch. If the cursor awaits data, next waits for it.
func (d *Deployment) next(ctx context.Context, c *cursor, size int64, wait time.Duration) ([]bson.Raw, bool, error) {
	timeout := time.After(wait)
	for {
		changed := d.Changed()
		docs, done, err := c.source.batch(size)
		if err != nil || done || len(docs) > 0 || !c.await {
			return docs, done, err
		}
		select {
		case <-changed:
		case <-timeout:
			return nil, false, nil
		case <-c.killed:
			return nil, true, c.cause
		case <-ctx.Done():
			return nil, false, store.Interrupted()
		}
	}
}

func killCursors(s *call, a *args) action {
	name, isName := a.doc[0].Value.(string)
	a.Refuse(!isName, fault.BadValue, "collection name has invalid type %s", value.TypeName(a.doc[0].Value))
	a.Refuse(name == "", fault.InvalidNamespace, "Invalid namespace specified '%s.'", s.req.DB)
	ids, ns, all := a.array("cursors"), s.req.DB+"."+name, &s.d.cursors
	return func() (bson.D, error) {
		killed, missing := bson.A{}, bson.A{}
		all.mu.Lock()
		defer all.mu.Unlock()
		for _, v := range ids {
			c := all.open[v.(int64)]
			if c == nil || c.server != address(s.req) || mongos(s.req) && c.ns != ns {
				missing = append(missing, v)
				continue
			}
			killed = append(killed, v)
			if c.busy && c.isStream() { // its getMore ends in its own time
				delete(all.open, c.id)
				continue
			}
			all.kill(errCursorKilled(), func(x *cursor) bool { return x == c })
		}
		return value.Doc("cursorsKilled", killed, "cursorsNotFound", missing, "cursorsAlive", bson.A{},
			"cursorsUnknown", bson.A{}), nil
	}
}

// isStream reports whether the cursor belongs to a change stream.
func (c *cursor) isStream() bool {
	_, ok := c.source.(*stream)
	return ok
}

// onShardHost converts an error of a source: a mongos names the shard that has failed.
func (s *call) onShardHost(c *cursor, err error) error {
	e, ok := err.(*fault.Error)
	if !ok || !mongos(s.req) || c.isStream() || e.Code == fault.CursorKilled {
		return err
	}
	return fault.Within("Error on remote shard "+s.host(), e)
}

// scan is the source of a find: it reads the collection as it is at each batch.
type scan struct {
	q       *findCommand
	c       *store.Collection
	read    []*store.Record // of the collection, when planned was found; nil if changes are not seen
	planned []*store.Record // not returned yet
	last    *store.Record   // returned
	opened  bool
	left    int64 // the number of documents up to the limit, if there is one
	known   bool  // as in results
	at      bson.D
}

func (c *scan) extra() bson.D { return c.at }

func (c *scan) batch(n int64) ([]bson.Raw, bool, error) {
	if c.opened && c.read != nil {
		if err := c.refresh(); err != nil {
			return nil, true, err
		}
	}
	c.opened = true
	if c.q.limit > 0 {
		c.planned = c.planned[:min(c.left, int64(len(c.planned)))]
	}
	docs, size := []bson.Raw{}, 0
	for _, r := range c.planned {
		if n >= 0 && int64(len(docs)) >= n {
			break
		}
		doc, err := c.q.result(r)
		if err != nil {
			return nil, true, err
		}
		if size += len(doc); len(docs) > 0 && size > store.MaxDocument {
			break
		}
		docs, c.last = append(docs, doc), r
	}
	c.planned, c.left = c.planned[len(docs):], c.left-int64(len(docs))
	return docs, len(c.planned) == 0 && (n < 0 || c.known || int64(len(docs)) < n), nil
}

// refresh plans the rest of the scan again, if the collection has changed. A sort that no index provides has read
// everything.
func (c *scan) refresh() error {
	records, err := reread(c.q.s.d, c.c)
	if err != nil || c.q.blocking || len(records) == len(c.read) && (len(records) == 0 || &records[0] == &c.read[0]) {
		return err
	}
	c.read = records
	if c.planned, err = c.q.hits(records); c.last == nil {
		return err
	}
	after := func(r *store.Record) bool {
		return cmp.Or(c.q.order.Compare(r.Document(), c.last.Document()), cmp.Compare(r.ID, c.last.ID)) > 0
	}
	for len(c.planned) > 0 && !after(c.planned[0]) {
		c.planned = c.planned[1:]
	}
	return err
}

// reread returns the current records of a collection. It fails if the collection was dropped or renamed.
func reread(d *Deployment, c *store.Collection) ([]*store.Record, error) {
	w := d.NewWork(context.Background(), time.Time{}, 0)
	if now, records := w.Records(c.DB, c.Name); now != nil && value.Equal(now.UUID, c.UUID) {
		return records, nil
	}
	id := value.UUIDText(c.UUID.Data)
	if now := w.WithUUID(c.DB, c.UUID); now != nil {
		return nil, fault.Errorf(fault.QueryPlanKilled, "collection renamed from '%s' to '%s'. UUID %s", c.NS(), now.NS(), id)
	}
	return nil, fault.Errorf(fault.NamespaceNotFound, "collection dropped: '%s' :: caused by :: Unable to resolve %s",
		c.NS(), id)
}

// tail is the source of a tailable cursor on a capped collection.
type tail struct {
	q    *findCommand
	c    *store.Collection
	skip int64 // the number of documents to skip
	last int64 // ID of the last returned record
}

func (t *tail) extra() bson.D { return nil }

func (t *tail) batch(n int64) ([]bson.Raw, bool, error) {
	records, err := reread(t.q.s.d, t.c)
	i, found := slices.BinarySearchFunc(records, t.last,
		func(r *store.Record, id int64) int { return cmp.Compare(r.ID, id) })
	switch {
	case err != nil && !t.q.s.has.ErrorContext:
		return nil, true, fault.Errorf(fault.QueryPlanKilled, "collection dropped between getMore calls")
	case err != nil:
		return nil, true, fault.Within("Executor error during getMore", err)
	case t.last > 0 && !found && t.q.s.has.TailPositions:
		return nil, true, fault.Errorf(fault.CappedPositionLost, "Executor error during getMore :: caused by :: "+
			"CollectionScan died due to failure to restore tailable cursor position.")
	case n == 0:
		return nil, false, nil
	case found:
		i++
	}
	limit := int64(0)
	if n > 0 {
		limit = n + t.skip
	}
	hits, err := search(nil, records[i:], t.q.match, limit)
	passed := min(t.skip, int64(len(hits)))
	hits, t.skip = hits[passed:], t.skip-passed
	out := make([]bson.Raw, len(hits))
	for i, r := range hits {
		doc, failed := t.q.result(r)
		err = cmp.Or(err, failed)
		out[i], t.last = doc, r.ID
	}
	return out, err != nil, err
}
