package commands

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/internal/fault"
	"github.com/unified-test-runner/utr/embedded/internal/pipeline"
	"github.com/unified-test-runner/utr/embedded/internal/store"
	"github.com/unified-test-runner/utr/embedded/internal/value"
	"github.com/unified-test-runner/utr/embedded/internal/version"
)

// stream is the source of a change stream. It reads the oplog.
type stream struct {
	d   *Deployment
	has *version.Features
	// The namespace to watch: coll is empty for a database, db for the whole cluster.
	db, coll string
	pipeline *pipeline.Pipeline
	// Options of $changeStream.
	fullDocument string
	before       string
	expanded     bool

	next    int64      // sequence number of the next oplog entry to read
	skip    bool       // of that entry, only the invalidate event is left
	token   token      // postBatchResumeToken
	pending []bson.Raw // events not returned yet
	tokens  []token    // of pending
	invalid bool       // the stream has been invalidated
}

// watch opens the change stream of an aggregation whose first stage is $changeStream with this argument.
func (g *aggregation) watch(arg any) (bson.D, error) {
	s := g.s
	doc, ok := arg.(bson.D)
	a := &args{of: "$changeStream", doc: doc, First: new(fault.First)}
	a.Refuse(!s.d.Logged(), 40573, "The $changeStream stage is only supported on replica sets")
	if s.InTransaction() {
		a.Note(s.unfit("$changeStream"))
	}
	a.Refuse(!ok, 50808, "$changeStream stage expects a document as argument.")
	a.Note(CheckDocument(s.req, "$changeStream", doc))
	st := &stream{d: s.d, has: s.has, db: s.req.DB, coll: g.name, fullDocument: a.str("fullDocument"),
		before: a.str("fullDocumentBeforeChange"), expanded: a.flag("showExpandedEvents")}
	switch all := a.flag("allChangesForCluster"); {
	case all && (g.name != "" || st.db != "admin"):
		a.Fail(fault.IllegalOperation,
			"A $changeStream with 'allChangesForCluster:true' may only be opened on the 'admin' database, and with no collection name; found %s", g.ns)
	case all:
		st.db = ""
	case internalDB(st.db):
		a.Fail(fault.InvalidNamespace, "$changeStream may not be opened on the internal %s database", st.db)
	case strings.HasPrefix(g.name, "system."):
		a.Fail(fault.InvalidNamespace, "$changeStream may not be opened on the internal %s collection", g.ns)
	}
	list := g.list[1:]
	for _, item := range list {
		name := item.(bson.D)[0].Key
		a.Refuse(name != "$match" && !pipeline.Transforms(name), fault.IllegalOperation,
			"%s is not permitted in a $changeStream pipeline", name)
	}
	var err error
	st.pipeline, err = pipeline.Compile(list, g.opts)
	a.Note(err)
	s.View(func(tx *store.Tx) {
		c := tx.Main(s.req.DB, g.name)
		a.Refuse(c != nil && c.IsView(), fault.OptionNotSupportedOnView, "$changeStream is not supported on views.")
	})
	if a.Err == nil {
		a.Note(st.start(a))
	}
	if a.Err != nil {
		return nil, a.Err
	}
	return s.open(g.ns, st, cursorOptions{size: g.batchSize, await: true})
}

// internalDB reports whether a database is reserved for the server.
func internalDB(name string) bool { return name == "admin" || name == "config" || name == "local" }

// start finds the position in the oplog at which a stream begins.
func (st *stream) start(o *args) error {
	log := st.d.History()
	options := slices.DeleteFunc([]string{"resumeAfter", "startAfter", "startAtOperationTime"},
		func(k string) bool { return !o.has(k) })
	switch {
	case len(options) > 1:
		return fault.Errorf(40674, "Only one type of resume option is allowed, but multiple were found.")
	case len(options) == 0:
		st.next, st.token = log.Next(), token{ts: log.Now, highWater: true}
		return nil
	}
	option, text := options[0], ""
	ts := value.As[bson.Timestamp](o.doc, "startAtOperationTime")
	if option != "startAtOperationTime" {
		text, ts = o.token(option)
	}
	st.token = token{ts: ts, highWater: true}
	switch {
	case o.Err != nil:
		return o.Err
	case ts.Compare(log.From) < 0:
		return historyLost()
	case option == "startAtOperationTime":
		st.next = log.Seek(ts)
		return nil
	case st.token.String() == text:
		st.next = log.Seek(bson.Timestamp{T: ts.T, I: ts.I + 1})
		return nil
	}
	return st.resume(&log, option, text)
}

func historyLost() error {
	return fault.Errorf(fault.ChangeStreamHistoryLost,
		"Resume of change stream was not possible, as the resume point may no longer be in the oplog.")
}

// resume finds the position after the event with the resume token in an option. The caller has set the time.
func (st *stream) resume(log *store.History, option, text string) error {
	ts := st.token.ts
	for seq := log.Seek(ts); ; seq++ {
		e, ok := log.At(seq)
		if !ok || e.TS != ts {
			return fault.Errorf(fault.ChangeStreamFatalError, "cannot resume stream; the resume token was not found. %s",
				value.Text(value.Doc("_data", text)))
		}
		event := tokenOf(e, false)
		switch {
		case event.String() == text && st.invalidates(e): // the invalidate event is next
			st.token, st.next, st.skip = event, seq, true
			return nil
		case event.String() == text:
			st.token, st.next = event, seq+1
			return nil
		case tokenOf(e, true).String() != text:
			continue
		case option == "resumeAfter":
			return fault.Errorf(fault.InvalidResumeToken,
				"Attempting to resume a change stream using 'resumeAfter' is not allowed from an invalidate notification.")
		}
		st.token, st.next = tokenOf(e, true), seq+1
		return nil
	}
}

func (st *stream) extra() bson.D {
	return value.Doc("postBatchResumeToken", value.Doc("_data", st.token.String()))
}

func (st *stream) batch(n int64) ([]bson.Raw, bool, error) {
	if err := st.fill(); err != nil {
		return nil, true, err
	}
	docs, rest := take(st.pending, n)
	if n := len(docs); n > 0 {
		if last := st.tokens[n-1]; len(rest) > 0 || last.ts.Compare(st.token.ts) >= 0 {
			st.token = last
		}
		st.tokens, st.pending = st.tokens[n:], rest
	}
	return docs, st.invalid && len(rest) == 0, nil
}

// fill reads new oplog entries.
func (st *stream) fill() error {
	if st.invalid || len(st.pending) > 0 {
		return nil
	}
	log := st.d.History()
	if st.next < log.First {
		return historyLost()
	}
	for st.next < log.Next() {
		e, _ := log.At(st.next)
		st.next++
		if !st.skip {
			if err := st.add(e, false); err != nil {
				return err
			}
		}
		st.skip = false
		if st.invalidates(e) {
			st.invalid = true
			return st.add(e, true)
		}
	}
	// All entries up to now have been read, so the stream can resume here.
	if log.Now.Compare(st.token.ts) > 0 {
		st.token = token{ts: log.Now, highWater: true}
	}
	return nil
}

// watches reports whether the namespace of an entry is watched.
func (st *stream) watches(e *store.Entry) bool {
	if internalDB(e.DB) || strings.HasPrefix(e.Coll, "system.") {
		return false
	}
	watched := func(db, coll string) bool {
		return st.db == "" || db == st.db && (st.coll == "" || st.coll == coll)
	}
	toDB, toColl, _ := strings.Cut(e.To, ".")
	return watched(e.DB, e.Coll) || e.Kind == store.Rename && watched(toDB, toColl)
}

// invalidates reports whether an entry invalidates the stream.
func (st *stream) invalidates(e *store.Entry) bool {
	ends := (e.Kind == store.Drop || e.Kind == store.Rename) && st.coll != "" || e.Kind == store.DropDatabase &&
		st.db != ""
	return ends && st.watches(e)
}

// expandedKinds are the events of showExpandedEvents.
var expandedKinds = []store.Kind{store.Create, store.CreateIndexes, store.DropIndexes, store.Modify, store.Shard}

// add applies the pipeline to the event of an entry and appends the result.
func (st *stream) add(e *store.Entry, invalidate bool) error {
	if !st.watches(e) || !st.expanded && slices.Contains(expandedKinds, e.Kind) ||
		e.Kind == store.DropDatabase && !invalidate && st.coll != "" {
		return nil
	}
	t := tokenOf(e, invalidate)
	doc, err := st.event(e, t, invalidate)
	if err != nil {
		return err
	}
	out, err := st.pipeline.Apply(nil, []bson.D{doc})
	if err != nil {
		return err
	}
	id := value.Get(doc, "_id")
	for _, doc := range out {
		if newID := value.Get(doc, "_id"); !value.Equal(newID, id) {
			return nonResumable(fault.ChangeStreamFatalError,
				"Encountered an event whose _id field, which contains the resume token, was modified by the pipeline. Modifying the _id field of an event makes it impossible to resume the stream from that point. Only transformations that retain the unmodified _id field are allowed. Expected: %s but found: %s",
				value.Text(value.Doc("_id", id)), value.Text(value.Doc("_id", newID)))
		}
		raw := value.Encode(doc)
		if len(raw) > maxEvent {
			return nonResumable(fault.BSONObjectTooLarge,
				"BSONObj size: %d (0x%X) is invalid. Size must be between 0 and %d(16MB)", len(raw), len(raw), maxEvent)
		}
		st.pending, st.tokens = append(st.pending, raw), append(st.tokens, t)
	}
	return nil
}

func nonResumable(code int32, format string, args ...any) error {
	e := fault.Errorf(code, format, args...)
	e.Labels = []string{"NonResumableChangeStreamError"}
	return e
}

const maxEvent = store.MaxDocument + 16*1024

// event returns the change event of an entry.
func (st *stream) event(e *store.Entry, t token, invalidate bool) (bson.D, error) {
	var p fault.First
	out := value.Doc("_id", value.Doc("_data", t.String()), "operationType", string(e.Kind), "clusterTime", e.TS)
	add := func(when bool, key string, v any) { out = value.AddIf(out, when, key, v) }
	add(st.expanded && len(e.UUID.Data) > 0 && !invalidate, "collectionUUID", e.UUID)
	add(st.has.WallTime, "wallTime", e.Wall)
	r := cmp.Or(e.New, e.Old)
	if e.LSID != nil && r != nil {
		add(true, "txnNumber", e.TxnNumber)
		add(true, "lsid", withDigest(value.FromRaw(e.LSID.Lookup("id"))))
	}
	if invalidate {
		out[1].Value = "invalidate"
		return out, nil
	}
	switch e.Kind {
	case store.Insert, store.Replace:
		add(true, "fullDocument", e.New.Document())
	case store.Update:
		out = append(out, st.updated(&p, e)...)
	}
	add(true, "ns", nsDocument(e.DB, e.Coll))
	detail := e.Detail
	if e.Kind == store.Rename {
		db, coll, _ := strings.Cut(e.To, ".")
		detail = value.Doc("to", nsDocument(db, coll))
		out = append(out, detail...)
		if e.Dropped != nil {
			detail = value.Append(detail, "dropTarget", *e.Dropped)
		}
	}
	if r != nil {
		add(true, "documentKey", value.Doc("_id", value.Get(r.Document(), "_id")))
	}
	if e.Kind == store.Update {
		add(true, "updateDescription", difference(e.Old.Document(), e.New.Document(), st.expanded))
	}
	add(e.Kind == store.Create && st.has.NSType, "nsType", e.NSType)
	add(detail != nil && st.expanded, "operationDescription", detail)
	if e.Old != nil {
		out = append(out, image(&p, "fullDocumentBeforeChange", st.before, e.PreImages, e.Old.Document(),
			"pre-image for all update, delete and replace events, but the pre-image")...)
	}
	return out, p.Err
}

func nsDocument(db, coll string) bson.D {
	return value.AddIf(value.Doc("db", db), coll != "", "coll", coll)
}

// updated returns the field fullDocument of an update event, if the stream requests it.
func (st *stream) updated(p *fault.First, e *store.Entry) bson.D {
	if st.fullDocument != "updateLookup" {
		return image(p, "fullDocument", st.fullDocument, e.PreImages, e.New.Document(),
			"post-image for all update events, but the post-image")
	}
	var current any
	st.d.NewWork(context.Background(), time.Time{}, 0).View(func(tx *store.Tx) {
		if c := tx.Main(e.DB, e.Coll); c != nil {
			if r := c.Find(e.New.ID); r != nil {
				current = r.Document()
			}
		}
	})
	return value.Doc("fullDocument", current)
}

// image returns a field with a pre-image or post-image according to mode. kept reports whether the collection has them.
func image(p *fault.First, field, mode string, kept bool, doc bson.D, what string) bson.D {
	p.Refuse(mode == "required" && !kept, fault.NoMatchingDocument,
		"Change stream was configured to require a %s was not found for event", what)
	switch {
	case mode != "whenAvailable" && mode != "required":
		return nil
	case kept:
		return value.Doc(field, doc)
	}
	return value.Doc(field, nil)
}

// difference returns the updateDescription of an update. With expanded, it has the paths whose text is ambiguous
// because a field name is a number or contains a dot.
func difference(old, updated bson.D, expanded bool) bson.D {
	d := differ{updated: bson.D{}, removed: bson.A{}, truncated: bson.A{}, ambiguous: bson.D{}}
	d.documents(path{}, old, updated)
	out := value.Doc("updatedFields", d.updated, "removedFields", d.removed, "truncatedArrays", d.truncated)
	return value.AddIf(out, expanded, "disambiguatedPaths", append(d.ambiguous, d.ambiguousRemoved...))
}

type differ struct {
	updated, ambiguous, ambiguousRemoved bson.D
	removed, truncated                   bson.A
}

type path struct {
	parts bson.A // field names are strings, array indexes int32
	text  string // the parts, separated by dots
}

func (p path) with(part any) path {
	text := fmt.Sprint(part)
	if len(p.parts) > 0 {
		text = p.text + "." + text
	}
	return path{append(slices.Clip(p.parts), part), text}
}

// ambiguous returns a field of disambiguatedPaths with the parts of the path if its text is ambiguous.
func (p path) ambiguous() bson.D {
	for i, part := range p.parts {
		name, ok := part.(string)
		if ok && (strings.Contains(name, ".") || i > 0 && name != "" && strings.Trim(name, "0123456789") == "") {
			return value.Doc(p.text, p.parts)
		}
	}
	return nil
}

func (d *differ) documents(p path, old, updated bson.D) {
	for _, e := range old {
		if _, ok := value.Field(updated, e.Key); !ok {
			removed := p.with(e.Key)
			d.removed = append(d.removed, removed.text)
			d.ambiguousRemoved = append(d.ambiguousRemoved, removed.ambiguous()...)
		}
	}
	for _, e := range updated {
		d.values(p.with(e.Key), value.Lookup(old, e.Key), e.Value)
	}
}

func (d *differ) values(p path, old, updated any) {
	if value.TypeName(old) == value.TypeName(updated) && value.Equal(old, updated) {
		return
	}
	switch x := updated.(type) {
	case bson.D:
		if y, ok := old.(bson.D); ok && len(y) > 0 {
			d.documents(p, y, x)
			return
		}
	case bson.A:
		if y, ok := old.(bson.A); ok && len(y) > 0 && len(x) > 0 {
			for i := range x {
				d.values(p.with(int32(i)), value.Element(y, i), x[i])
			}
			if len(x) < len(y) {
				size := int32(len(x))
				d.truncated = append(d.truncated, value.Doc("field", p.text, "newSize", size))
			}
			return
		}
	}
	d.updated = value.Append(d.updated, p.text, updated)
	d.ambiguous = append(d.ambiguous, p.ambiguous()...)
}
