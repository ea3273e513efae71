package reference

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/mnet"

	"github.com/unified-test-runner/utr/engine/enginekit"
	"github.com/unified-test-runner/utr/entities"
	"github.com/unified-test-runner/utr/internal/wire/codes"
	"github.com/unified-test-runner/utr/reference/retry"
	"github.com/unified-test-runner/utr/result"
)

// cursor is pinned to the server that created it, and behind a load balancer to the connection.
type cursor struct {
	client  *client
	db      string
	coll    string
	session *clientSession
	address string
	options cursorOptions
	limit   *time.Duration // timeoutMS of the operation that created it, or nil
	life    time.Time      // deadline of the whole cursor, or zero

	mu       sync.Mutex
	id       int64
	conn     *mnet.Connection
	perished bool // conn has failed: it is closed when it is checked in
	late     bool // the reply to the last command on conn is missing, after a timeout under timeoutMS
	batch    []bson.Raw
	returned int64
	token    bson.Raw // postBatchResumeToken of the last batch
	lost     bool     // the reply to a getMore: the next one would skip its batch
	closed   bool
}

// cursorOptions are the options of getMore.
type cursorOptions struct {
	batchSize int64
	limit     int64 // of find; 0: none
	maxTime   int64 // milliseconds; 0: none
	comment   bson.RawValue
	tailable  bool
	await     bool
	lifetime  bool // timeoutMode cursorLifetime
}

// openCursor returns the cursor of a reply. It takes ownership of the implicit session.
func (c *call) openCursor(r reply, o cursorOptions) (*cursor, *result.Error) {
	k := &cursor{client: c.client, session: c.session, address: r.address, conn: r.conn, options: o, limit: c.limit}
	if o.lifetime {
		k.life, _ = deadlineOf(c.ctx)
	}
	if err := k.take(r, "firstBatch"); err != nil {
		return nil, err
	}
	c.kept = c.session.implicit
	return k, nil
}

// take reads the batch of a reply, and the id and the namespace of the cursor, which any reply may change (Find,
// getMore and killCursors Commands, "getMore").
func (k *cursor) take(r reply, field string) *result.Error {
	doc, _ := r.doc.Lookup("cursor").DocumentOK()
	docs, err := enginekit.NewArguments(doc).Documents(field)
	if err != nil {
		return r.lacks("cursor with documents in " + field)
	}
	if ns, ok := doc.Lookup("ns").StringValueOK(); ok {
		k.db, k.coll, _ = strings.Cut(ns, ".")
	}
	k.batch = append(k.batch, docs...)
	k.returned += int64(len(docs))
	if t, ok := doc.Lookup("postBatchResumeToken").DocumentOK(); ok {
		k.token = t
	}
	if k.id, _ = enginekit.Integer(doc.Lookup("id")); k.id == 0 {
		k.release()
	}
	return nil
}

func (k *cursor) ns() namespace { return namespace{client: k.client, db: k.db, coll: k.coll} }

// release releases the connection and the session of an exhausted or closed cursor.
func (k *cursor) release() {
	k.disconnect()
	if k.session.implicit {
		k.session.end()
	}
}

func (k *cursor) disconnect() {
	if k.conn != nil {
		if k.perished {
			expire(k.conn)
		}
		_ = k.conn.UnpinFromCursor()
		_ = k.conn.Close()
		k.conn = nil
	}
}

// next implements iterator.
func (k *cursor) next(ctx context.Context, wait bool, tr *trace) (bson.Raw, *result.Error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	ctx, cancel := k.bounded(ctx)
	defer cancel()
	for tried := false; len(k.batch) == 0; tried = true {
		if k.id == 0 || k.lost || tried && !wait {
			return nil, nil
		}
		if err := k.getMore(ctx, tr); err != nil {
			return nil, err
		}
	}
	doc := k.batch[0]
	k.batch = k.batch[1:]
	return doc, nil
}

// bounded applies the deadline of an iteration, of the cursor's life, or of withTransaction.
func (k *cursor) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	switch s := k.session; {
	case !k.life.IsZero():
		return k.client.driver.options.until(ctx, k.life)
	case s.callback != nil:
		return k.client.driver.options.until(ctx, s.deadline)
	}
	return k.client.driver.options.within(ctx, k.limit)
}

// command returns a command for the cursor's server and connection.
func (k *cursor) command(body bson.D) *command {
	return &command{body: body, db: k.db, op: retry.Lookup(body[0].Key), write: true,
		session: k.session, address: k.address, conn: k.conn, late: &k.late}
}

// execute performs a command of the cursor. Behind a load balancer, a failed connection stays pinned (Load Balancers,
// "Behaviour With Cursors"). It is not used again, except after a timeout under timeoutMS, when its reply may still
// arrive: CSOT requires killCursors then, and the suite close-cursors expects it to succeed.
func (k *cursor) execute(ctx context.Context, cmd *command, tr *trace) (reply, *result.Error) {
	r, err := k.client.execute(ctx, cmd, tr)
	if err != nil && broken(err) && k.conn != nil {
		k.perished, k.late = true, err.Timeout
	}
	return r, err
}

func (k *cursor) getMore(ctx context.Context, tr *trace) *result.Error {
	o := k.options
	size := o.batchSize
	if o.limit > 0 && size > 0 {
		size = max(min(size, o.limit-k.returned), 0)
	}
	cmd := k.command(addIf(document("getMore", k.id, "collection", k.coll), size > 0, "batchSize", int32(size)))
	cmd.pin, cmd.timeout, cmd.noMaxTime = true, k.limit != nil, true // maxTimeMS is for awaitData
	cmd.adapt = func(a *attempt) (bson.D, error) {
		wait := o.maxTime
		if k.limit != nil {
			wait = max(min(wait, a.remaining.Milliseconds()), 1)
		}
		d := addIf(nil, o.maxTime > 0, "maxTimeMS", wait)
		return addIf(d, o.comment.Type != 0 && a.wire >= wire44, "comment", o.comment), nil
	}
	r, err := k.execute(ctx, cmd, tr)
	if err != nil {
		// Otherwise it must be killed (Run Command, "Resource Cleanup"; Load Balancers, "Behaviour With Cursors").
		k.lost = broken(err) && !err.Timeout
		if k.lost && k.conn != nil || err.Kind == "server" && err.Code == codes.CursorNotFound {
			k.id = 0
		}
		return err
	}
	return k.take(r, "nextBatch")
}

// close implements iterator. Errors of killCursors are ignored.
func (k *cursor) close(ctx context.Context, limit *time.Duration, tr *trace) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.end(ctx, limit, tr)
}

func (k *cursor) end(ctx context.Context, limit *time.Duration, tr *trace) {
	k.kill(ctx, limit, tr)
	k.release()
}

// kill closes the cursor, but not its session.
func (k *cursor) kill(ctx context.Context, limit *time.Duration, tr *trace) {
	if k.closed {
		return
	}
	k.closed, k.batch = true, nil
	defer k.disconnect()
	if k.id == 0 {
		return
	}
	limit = cmp.Or(limit, k.limit)
	cmd := k.command(document("killCursors", k.coll, "cursors", bson.A{k.id}))
	k.id = 0
	timeout := 10 * time.Second
	if cmd.timeout = limit != nil && *limit > 0; cmd.timeout {
		timeout = *limit
	}
	ctx, cancel := k.client.driver.options.within(ctx, &timeout)
	defer cancel()
	_, _ = k.execute(ctx, cmd, tr)
}

// all returns the remaining documents. It closes the cursor on an error, and a tailable cursor, which never ends, after
// one getMore.
func (k *cursor) all(ctx context.Context, tr *trace) ([]bson.Raw, *result.Error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for all := append([]bson.Raw{}, k.batch...); ; all = append(all, k.batch...) {
		if k.batch = nil; k.id == 0 {
			return all, nil
		}
		bounded, cancel := k.bounded(ctx)
		err := k.getMore(bounded, tr)
		cancel()
		if err != nil || k.options.tailable {
			k.end(ctx, nil, tr)
			return all, err
		}
	}
}

func cursorRows() []row {
	iterate := func(wait bool) func(*call) (any, *result.Error) {
		return func(c *call) (any, *result.Error) {
			doc, err := c.Entity.(iterator).next(c.ctx, wait, &c.trace)
			if doc == nil {
				return enginekit.Nothing{}, err
			}
			return slices.Clone(doc), err
		}
	}
	return []row{
		noResult(entities.Cursor, "close", "", func(c *call) *result.Error {
			c.Entity.(iterator).close(c.ctx, c.limit, &c.trace)
			return nil
		}),
		{entities.Cursor, "iterateOnce", "", iterate(false)},
		{entities.Cursor, "iterateUntilDocumentOrError", "", iterate(true)},
	}
}
