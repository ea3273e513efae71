package commands

import (
	"cmp"
	"context"
	"math"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/internal/failpoint"
	"github.com/unified-test-runner/utr/embedded/internal/fault"
	"github.com/unified-test-runner/utr/embedded/internal/query"
	"github.com/unified-test-runner/utr/embedded/internal/store"
	"github.com/unified-test-runner/utr/embedded/internal/value"
)

const (
	firstBatch = 101
	awaitTime  = time.Second
)

// source produces the documents of a cursor.
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
	// known means that the cursor is exhausted with the last document. A server that scans notices this only when it
	// looks for another one.
	known bool
	at    bson.D
}

func (l *results) batch(n int64) (docs []bson.Raw, done bool, err error) {
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
	size    int64 // of the first batch
	single  bool  // only one batch
	await   bool  // getMore waits for data
	idFirst bool  // id and ns precede the batch in the reply
}

// open returns a reply with the first batch of a source and registers the cursor unless it is exhausted.
func (s *call) open(ns string, src source, o cursorOptions) (bson.D, error) {
	docs, done, err := src.batch(o.size)
	if err != nil {
		return nil, err
	}
	c := &cursor{ns: ns, source: src, server: address(s.req), session: store.SessionKey(s.req.LSID), txn: -1, api: s.req.API,
		killed: make(chan struct{}), await: o.await, noTimeout: s.noTimeout, used: time.Now()}
	if s.InTransaction() {
		c.txn = s.TxnNumber()
	}
	extra := src.extra()
	if !done && !o.single {
		s.d.cursors.keep(c)
	}
	return cursorReply(c, "firstBatch", docs, extra, o.idFirst), nil
}

// cursorReply returns the reply with a batch, with the fields in the server's order.
func cursorReply(c *cursor, key string, docs []bson.Raw, extra bson.D, idFirst bool) bson.D {
	if docs == nil {
		docs = []bson.Raw{}
	}
	head, batch := bson.D{{Key: "id", Value: c.id}, {Key: "ns", Value: c.ns}}, bson.D{{Key: key, Value: docs}}
	if len(extra) > 0 && extra[0].Key == "postBatchResumeToken" {
		batch, extra = append(batch, extra...), nil
	}
	if !idFirst {
		head, batch = batch, head
	}
	return bson.D{{Key: "cursor", Value: slices.Concat(head, batch, extra)}}
}

// list returns the reply with a cursor over complete results.
func (s *call) list(ns string, docs []bson.Raw, size int64) bson.D {
	reply, _ := s.open(ns, &results{docs: docs, known: true}, cursorOptions{size: size, idFirst: true}) // results do not fail
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
	coll, size, maxTime, d := a.str("collection"), a.number("batchSize", -1), a.number("maxTimeMS", 0), s.d
	a.Refuse(a.has("batchSize") && size < 0, fault.ValueTooSmall, "BSON field 'batchSize' value must be >= 0, actual value '%d'", size)
	if size == 0 {
		size = -1
	}
	return func() (bson.D, error) {
		c, err := d.cursors.checkOut(s, id, s.req.DB+"."+coll, maxTime > 0)
		if err != nil {
			return nil, err
		}
		ended := true // on an error
		defer func() { d.cursors.checkIn(c, ended) }()
		_, s.req.IsChangeStream = c.source.(*stream)
		if f, hit := s.req.FailPoint(failpoint.FailGetMoreAfterCursorCheckout); hit {
			return nil, fault.Errorf(f.Code, "Hit the '%s' failpoint", failpoint.FailGetMoreAfterCursorCheckout)
		}
		docs, done, err := d.next(s.req.Context, c, size, maxTime)
		if ended = done; err != nil {
			return nil, err
		}
		reply := &cursor{id: c.id, ns: c.ns}
		if done {
			reply.id = 0
		}
		return cursorReply(reply, "nextBatch", docs, c.source.extra(), mongos(s.req)), nil
	}
}

// next returns the next batch. If the cursor awaits data, next waits for it up to maxTime milliseconds.
func (d *Deployment) next(ctx context.Context, c *cursor, size, maxTime int64) ([]bson.Raw, bool, error) {
	wait := awaitTime
	if maxTime > 0 {
		wait = time.Duration(maxTime) * time.Millisecond
	}
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
			return nil, true, fault.Errorf(fault.CursorKilled, "operation was interrupted because a client disconnected or the cursor was killed")
		case <-ctx.Done():
			return nil, false, store.Interrupted()
		}
	}
}

func killCursors(s *call, a *args) action {
	ids, ns, d := a.array("cursors"), s.req.DB+"."+a.name(), s.d
	return func() (bson.D, error) {
		killed, missing := bson.A{}, bson.A{}
		all := &d.cursors
		all.mu.Lock()
		defer all.mu.Unlock()
		for _, v := range ids {
			c := all.open[v.(int64)]
			if c == nil || c.server != address(s.req) || c.ns != ns {
				missing = append(missing, v)
				continue
			}
			delete(all.open, c.id)
			close(c.killed)
			killed = append(killed, v)
		}
		return bson.D{
			{Key: "cursorsKilled", Value: killed}, {Key: "cursorsNotFound", Value: missing},
			{Key: "cursorsAlive", Value: bson.A{}}, {Key: "cursorsUnknown", Value: bson.A{}},
		}, nil
	}
}

// tail is the source of a tailable cursor on a capped collection.
type tail struct {
	d        *Deployment
	db, name string
	uuid     bson.Binary
	filter   *query.Filter
	proj     *query.Projection
	last     int64 // ID of the last returned record
	old      bool  // before 5.0
}

func (t *tail) extra() bson.D { return nil }

func (t *tail) batch(n int64) ([]bson.Raw, bool, error) {
	var unread []*store.Record
	dropped, overrun := false, false
	_ = t.d.NewWork(context.Background(), time.Time{}, math.MaxInt64).Try(func(tx *store.Tx) error {
		c := tx.Main(t.db, t.name)
		if dropped = c == nil || !value.Equal(c.UUID, t.uuid); !dropped {
			unread = c.After(t.last)
			overrun = t.last > 0 && c.Find(t.last) == nil && !t.old
		}
		return nil
	})
	switch {
	case overrun:
		return nil, true, fault.Errorf(fault.CappedPositionLost, "Executor error during getMore :: caused by :: CollectionScan died due to failure to restore tailable cursor position. "+
			"Last seen record id: RecordId(%d)", t.last)
	case dropped && !t.old:
		return nil, true, fault.Errorf(fault.NamespaceNotFound, "Executor error during getMore :: caused by :: collection dropped: '%s.%s'", t.db, t.name)
	case dropped:
		return nil, true, fault.Errorf(fault.QueryPlanKilled, "collection dropped between getMore calls")
	}
	if n == 0 {
		return nil, false, nil
	}
	found, err := search(nil, unread, t.filter, n)
	out := make([]bson.Raw, len(found))
	for i, r := range found {
		doc, failed := t.proj.Apply(r.Document())
		err = cmp.Or(err, failed)
		out[i], t.last = value.Encode(doc), r.ID
	}
	return out, err != nil, err
}
