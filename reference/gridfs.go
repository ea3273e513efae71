package reference

import (
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/engine/enginekit"
	"github.com/unified-test-runner/utr/entities"
	"github.com/unified-test-runner/utr/internal/wire/codes"
	"github.com/unified-test-runner/utr/reference/selection"
	"github.com/unified-test-runner/utr/result"
)

// bucket is a GridFS bucket entity.
type bucket struct {
	namespace // coll is the name of the bucket
	chunk     int64
	checked   atomic.Bool // the indexes exist, or the bucket has files
}

func newBucket(db namespace, v bson.RawValue) (*bucket, error) {
	b := &bucket{namespace: db, chunk: 255 * 1024}
	b.coll = "fs"
	if v.Type == 0 {
		return b, nil
	}
	fields := b.scope.fields()
	fields["bucketName"] = enginekit.Set(&b.coll, bson.RawValue.StringValueOK)
	fields["chunkSizeBytes"] = enginekit.Set(&b.chunk, func(v bson.RawValue) (int64, bool) {
		n, ok := enginekit.Integer(v)
		return n, ok && n > 0
	})
	fields["disableMD5"] = func(bson.RawValue) error { return nil }
	err := fields.Read("bucketOptions", v, unsupportedField)
	return b, err
}

func fileError(message string) *result.Error {
	return &result.Error{Message: message, Client: true, Kind: "gridfs"}
}

func bucketRows() []row {
	byID := func(c *call) bson.D { return document("_id", exactly(c.Arg("id"))) }
	byName := func(c *call) bson.D { return document("filename", exactly(c.Arg("filename"))) }
	return []row{
		noResult(entities.Bucket, "delete", "",
			func(c *call) *result.Error { return c.deleteFiles([]bson.RawValue{c.Arg("id")}) }),
		noResult(entities.Bucket, "deleteByName", "", func(c *call) *result.Error {
			if err := consistent(c.scope.writeConcern); err != nil {
				return err
			}
			files, err := c.files(byName(c), bson.E{Key: "projection", Value: byOne("_id")})
			var ids []bson.RawValue
			for _, f := range files {
				ids = append(ids, f.Lookup("_id"))
			}
			if err != nil {
				return err
			}
			return c.deleteFiles(ids)
		}),
		{entities.Bucket, "download", "",
			func(c *call) (any, *result.Error) { return c.download(c.files(byID(c), one()...)) }},
		{entities.Bucket, "downloadByName", "", func(c *call) (any, *result.Error) {
			order, skip := int32(1), c.Number("revision")
			if !c.Has("revision") {
				skip = -1
			}
			if skip < 0 {
				order, skip = -1, -skip-1
			}
			revision := document("sort", document("uploadDate", order), "skip", skip)
			return c.download(c.files(byName(c), append(revision, one()...)...))
		}},
		noResult(entities.Bucket, "drop", "", func(c *call) *result.Error {
			for _, part := range []string{"files", "chunks"} {
				if err := c.perform(document("drop", c.part(part)), codes.NamespaceNotFound); err != nil {
					return err
				}
			}
			return nil
		}),
		{entities.Bucket, "find", "", func(c *call) (any, *result.Error) {
			return c.query(c.findIn(c.part("files")), cursorOptions{lifetime: true, batchSize: c.Number("batchSize"),
				limit: c.Number("limit"), comment: c.Arg("comment")})
		}},
		noResult(entities.Bucket, "rename", "", func(c *call) *result.Error { return c.renameFiles(byID(c), false) }),
		noResult(entities.Bucket, "renameByName", "", func(c *call) *result.Error { return c.renameFiles(byName(c), true) }),
		{entities.Bucket, "upload", "", func(c *call) (any, *result.Error) {
			id := bson.NewObjectID()
			return id, c.upload(id)
		}},
		noResult(entities.Bucket, "uploadWithId", "", func(c *call) *result.Error { return c.upload(c.Arg("id")) }),
	}
}

// exactly returns the condition that a field equals a value. A document or a regular expression would be a condition
// itself (DRIVERS-3607). Other values are conditions of equality as they are: the official suites expect that.
func exactly(v bson.RawValue) any {
	if v.Type == bson.TypeEmbeddedDocument || v.Type == bson.TypeRegex {
		return document("$eq", v)
	}
	return v
}

// part returns the name of a collection of the bucket.
func (c *call) part(name string) string { return c.coll + "." + name }

// one returns the options of a find for one document.
func one() bson.D { return document("limit", int32(1), "singleBatch", true) }

// byOne returns a document whose fields are all 1: a projection or an index.
func byOne(fields ...string) bson.D {
	d := bson.D{}
	for _, f := range fields {
		d = append(d, bson.E{Key: f, Value: int32(1)})
	}
	return d
}

// files finds files. It returns an error if there are none.
func (c *call) files(filter bson.D, options ...bson.E) ([]bson.Raw, *result.Error) {
	find := append(document("find", c.part("files"), "filter", filter), options...)
	found, err := c.query(find, cursorOptions{lifetime: true})
	if err == nil && len(found) == 0 {
		err = fileError("FileNotFound: the file or its revision does not exist")
	}
	return found, err
}

// query finds documents in a collection of the bucket. Each find is a separate operation with its own retries.
func (c *call) query(find bson.D, o cursorOptions) ([]bson.Raw, *result.Error) {
	docs, err := c.documentsOf(c.read(find), o)
	if err == nil && c.session.implicit { // the cursor has ended the session
		c.session, c.kept = c.client.newSession(true), false
	}
	return docs, err
}

// download reads and validates the chunks of the first file.
func (c *call) download(files []bson.Raw, err *result.Error) (any, *result.Error) {
	if err != nil {
		return nil, err
	}
	file := files[0]
	length, ok := enginekit.Integer(file.Lookup("length"))
	size, ok2 := enginekit.Integer(file.Lookup("chunkSize"))
	if !ok || !ok2 || size <= 0 {
		return nil, fileError("the file has no length, or no chunkSize")
	}
	var chunks []bson.Raw
	if length > 0 {
		find := document("find", c.part("chunks"), "filter", document("files_id", exactly(file.Lookup("_id"))),
			"sort", byOne("n"))
		if chunks, err = c.query(find, cursorOptions{lifetime: true}); err != nil {
			return nil, err
		}
	}
	data := []byte{}
	for i, chunk := range chunks {
		n, _ := enginekit.Integer(chunk.Lookup("n"))
		_, part, _ := chunk.Lookup("data").BinaryOK()
		switch {
		case int64(len(data)) >= length && len(part) > 0:
			return nil, fileError("ExtraChunk: there are more chunks than the file's length requires")
		case n != int64(i):
			return nil, fileError("MissingChunk: a chunk is missing")
		case int64(len(part)) != min(size, length-int64(len(data))):
			return nil, fileError("ChunkIsWrongSize: a chunk has the wrong size")
		}
		data = append(data, part...)
	}
	if int64(len(data)) < length {
		return nil, fileError("MissingChunk: the last chunks are missing")
	}
	return bson.Binary{Data: data}, nil
}

func (c *call) renameFiles(filter bson.D, many bool) *result.Error {
	name, set := "update", document("$set", document("filename", c.Arg("newFilename")))
	if many {
		name = "multi-document update"
	}
	n, err := c.mutate("files", name, document("q", filter, "u", set, "multi", many))
	if err == nil && n == 0 {
		err = fileError("FileNotFound: nothing to rename")
	}
	return err
}

// mutate sends one statement to a collection of the bucket.
func (c *call) mutate(part, operation string, statement bson.D) (int64, *result.Error) {
	command := strings.TrimPrefix(operation, "multi-document ")
	statements := writeCommands[command].statements
	cmd := c.writing(operation, document(command, c.part(part), statements, bson.A{statement}, "ordered", true))
	cmd.sequences = []string{statements}
	r, err := c.run(cmd)
	if err != nil {
		return 0, err
	}
	n, _ := enginekit.Integer(r.doc.Lookup("n"))
	return n, nil
}

// deleteFiles deletes files, and then their chunks. Several ids belong to existing files, which never contain
// operators.
func (c *call) deleteFiles(ids []bson.RawValue) *result.Error {
	var of any = document("$in", ids)
	name, limit := "multi-document delete", int32(0)
	if len(ids) == 1 {
		of, name, limit = exactly(ids[0]), "delete", 1
	}
	n, err := c.mutate("files", name, document("q", document("_id", of), "limit", limit))
	if err != nil {
		return err
	}
	_, err = c.mutate("chunks", "multi-document delete", document("q", document("files_id", of), "limit", int32(0)))
	if err == nil && n == 0 {
		err = fileError("FileNotFound: the file does not exist")
	}
	return err
}

func (c *call) upload(id any) *result.Error {
	data, err := c.Source()
	if err != nil {
		return err
	}
	size := c.Entity.(*bucket).chunk
	if c.Has("chunkSizeBytes") {
		if size = c.Number("chunkSizeBytes"); size <= 0 {
			return argument("chunkSizeBytes must be positive")
		}
	}
	if err := consistent(c.scope.writeConcern); err != nil {
		return err
	}
	if err := c.indexes(); err != nil {
		return err
	}
	n := int32(0)
	for part := range slices.Chunk(data, int(size)) {
		chunk := document("_id", bson.NewObjectID(), "files_id", id, "n", n, "data", bson.Binary{Data: part})
		if _, err := c.mutate("chunks", "insert", chunk); err != nil {
			return err
		}
		n++
	}
	file := document("_id", id, "length", int64(len(data)), "chunkSize", int32(size),
		"uploadDate", bson.NewDateTimeFromTime(c.client.driver.options.Now()))
	_, err = c.mutate("files", "insert", c.copyArgs(file, "filename", "metadata", "contentType"))
	return err
}

// indexes creates the bucket's indexes before its first write if it has no files (GridFS, "Before write operations").
func (c *call) indexes() *result.Error {
	b := c.Entity.(*bucket)
	if b.checked.Load() {
		return nil
	}
	err := c.checkIndexes()
	b.checked.Store(err == nil)
	return err
}

func (c *call) checkIndexes() *result.Error {
	probe := c.read(append(document("find", c.part("files"), "filter", bson.D{}, "projection", byOne("_id")), one()...))
	probe.preference = selection.Preference{Hedge: probe.preference.Hedge}
	r, err := c.run(probe)
	if err != nil || len(firstBatch(r)) > 0 {
		return err
	}
	if err := c.index("files", false, "filename", "uploadDate"); err != nil {
		return err
	}
	return c.index("chunks", true, "files_id", "n")
}

// index creates an index of a collection of the bucket, unless an index with the same key exists.
func (c *call) index(part string, unique bool, fields ...string) *result.Error {
	r, err := c.run(c.enumerate(document("listIndexes", c.part(part), "cursor", bson.D{})))
	if err != nil && err.Code != codes.NamespaceNotFound {
		return err
	}
	for _, index := range firstBatch(r) {
		if key, _ := index.Lookup("key").DocumentOK(); ascending(key, fields) {
			return nil
		}
	}
	name := strings.Join(fields, "_1_") + "_1"
	index := addIf(document("key", byOne(fields...), "name", name), unique, "unique", true)
	return c.perform(document("createIndexes", c.part(part), "indexes", bson.A{index}), 0)
}

// ascending reports whether a key has the given fields in their order, all 1. The type of the number may be any.
func ascending(key bson.Raw, fields []string) bool {
	elements, _ := key.Elements()
	return slices.EqualFunc(elements, fields, func(e bson.RawElement, field string) bool {
		n, _ := enginekit.Integer(e.Value())
		decimal, _ := e.Value().Decimal128OK()
		value, err := strconv.ParseFloat(decimal.String(), 64)
		return e.Key() == field && (n == 1 || err == nil && value == 1)
	})
}

func firstBatch(r reply) []bson.Raw {
	cursor, _ := r.doc.Lookup("cursor").DocumentOK()
	docs, _ := enginekit.NewArguments(cursor).Documents("firstBatch")
	return docs
}
