package reference

import (
	"github.com/unified-test-runner/utr/engine/enginekit"
	"github.com/unified-test-runner/utr/reference/selection"
	"github.com/unified-test-runner/utr/result"
	"github.com/unified-test-runner/utr/specs/operations"
	"go.mongodb.org/mongo-driver/v2/bson"
)

// bucket is a GridFS bucket entity.
type bucket struct {
	db      *database
	name    string
	chunk   int64
	options scope
}

func newBucket(db *database, v bson.RawValue) (*bucket, error) {
	b := &bucket{db: db, name: "fs", chunk: 255 * 1024, options: db.options}
	if v.Type == 0 {
		return b, nil
	}
	fields := b.options.fields()
	fields["bucketName"] = enginekit.Set(&b.name, bson.RawValue.StringValueOK)
	fields["chunkSizeBytes"] = enginekit.Set(&b.chunk, func(v bson.RawValue) (int64, bool) {
		n, ok := enginekit.Integer(v)
		return n, ok && n > 0
	})
	fields["disableMD5"] = func(bson.RawValue) error { return nil }
	err := fields.Read("bucketOptions", v, lacking)
	return b, err
}

func fileError(message string) *result.Error {
	return &result.Error{Message: message, Client: true, Kind: "gridfs"}
}

func bucketRows() []row {
	named := func(c *call, name string, revision int64) (bson.Raw, *result.Error) {
		order, skip := int32(1), revision
		if revision < 0 {
			order, skip = -1, -revision-1
		}
		d := bson.D{{Key: "filter", Value: bson.D{{Key: "filename", Value: name}}},
			{Key: "sort", Value: bson.D{{Key: "uploadDate", Value: order}}}, {Key: "skip", Value: skip},
			{Key: "limit", Value: int32(1)}, {Key: "singleBatch", Value: true}}
		files, err := c.query("files", d)
		if err != nil {
			return nil, err
		}
		if len(files) == 0 {
			return nil, fileError("FileNotFound: there is no such revision of " + name)
		}
		return files[0], nil
	}
	byID := func(c *call) bson.D { return bson.D{{Key: "_id", Value: c.Arg("id")}} }
	rename := func(c *call, filter bson.D, many bool) (any, *result.Error) {
		n, err := c.change("files", filter, bson.D{{Key: "$set", Value: bson.D{{Key: "filename", Value: c.Arg("newFilename")}}}}, many)
		if err == nil && n == 0 {
			err = fileError("FileNotFound: nothing to rename")
		}
		return enginekit.Nothing{}, err
	}
	upload := func(withID bool) func(*call) (any, *result.Error) {
		return func(c *call) (any, *result.Error) {
			var id any = bson.NewObjectID()
			if withID {
				id = c.Arg("id")
			}
			if err := c.upload(id); err != nil {
				return nil, err
			}
			if withID {
				return enginekit.Nothing{}, nil
			}
			return id, nil
		}
	}
	uploadArgs := common("filename", "source", "chunkSizeBytes", "metadata", "disableMD5", "contentType", "aliases")
	return []row{
		{operations.Bucket, "delete", common("id"), func(c *call) (any, *result.Error) {
			return enginekit.Nothing{}, c.deleteFiles([]any{c.Arg("id")})
		}},
		{operations.Bucket, "deleteByName", common("filename"), func(c *call) (any, *result.Error) {
			files, err := c.query("files", bson.D{{Key: "filter", Value: bson.D{{Key: "filename", Value: c.Arg("filename")}}},
				{Key: "projection", Value: bson.D{{Key: "_id", Value: int32(1)}}}})
			if err != nil {
				return nil, err
			}
			if len(files) == 0 {
				return nil, fileError("FileNotFound: there is no file named " + c.Text("filename"))
			}
			var ids []any
			for _, f := range files {
				ids = append(ids, f.Lookup("_id"))
			}
			return enginekit.Nothing{}, c.deleteFiles(ids)
		}},
		{operations.Bucket, "download", common("id"), func(c *call) (any, *result.Error) {
			files, err := c.query("files", bson.D{{Key: "filter", Value: byID(c)}, {Key: "limit", Value: int32(1)}, {Key: "singleBatch", Value: true}})
			if err != nil {
				return nil, err
			}
			if len(files) == 0 {
				return nil, fileError("FileNotFound: there is no file with this id")
			}
			return c.download(files[0])
		}},
		{operations.Bucket, "downloadByName", common("filename", "revision"), func(c *call) (any, *result.Error) {
			revision := int64(-1)
			if c.Has("revision") {
				revision = c.Number("revision")
			}
			file, err := named(c, c.Text("filename"), revision)
			if err != nil {
				return nil, err
			}
			return c.download(file)
		}},
		{operations.Bucket, "drop", common(), func(c *call) (any, *result.Error) {
			name := c.entity.(*bucket).name
			for _, coll := range []string{name + ".files", name + ".chunks"} {
				if err := c.perform("drop", bson.D{{Key: "drop", Value: coll}}, namespaceNotFound); err != nil {
					return nil, err
				}
			}
			return enginekit.Nothing{}, nil
		}},
		{operations.Bucket, "find", common("filter", "sort", "limit", "skip", "batchSize", "maxTimeMS", "noCursorTimeout", "allowDiskUse"),
			func(c *call) (any, *result.Error) {
				d := bson.D{{Key: "filter", Value: c.document("filter")}}
				return result2(c.query("files", c.copyArgs(d, "sort", "limit", "skip", "batchSize", "maxTimeMS", "noCursorTimeout", "allowDiskUse")))
			}},
		{operations.Bucket, "rename", common("id", "newFilename"), func(c *call) (any, *result.Error) { return rename(c, byID(c), false) }},
		{operations.Bucket, "renameByName", common("filename", "newFilename"), func(c *call) (any, *result.Error) {
			return rename(c, bson.D{{Key: "filename", Value: c.Arg("filename")}}, true)
		}},
		{operations.Bucket, "upload", uploadArgs, upload(false)},
		{operations.Bucket, "uploadWithId", append([]string{"id"}, uploadArgs...), upload(true)},
	}
}

// query finds documents in one of the bucket's collections. Each find is an
// operation of its own, retried by itself.
func (c *call) query(part string, fields bson.D) ([]bson.Raw, *result.Error) {
	d := append(bson.D{{Key: "find", Value: c.entity.(*bucket).name + "." + part}}, fields...)
	docs, err := c.documentsOf(c.read("find", fixed(d)), cursorOptions{lifetime: true})
	if err != nil {
		return nil, err
	}
	if c.session.implicit { // the cursor has ended it
		c.session, c.kept = c.client.newSession(true), false
	}
	return docs, err
}

// download reads the chunks of a file and checks them against it.
func (c *call) download(file bson.Raw) (any, *result.Error) {
	length, ok := enginekit.Integer(file.Lookup("length"))
	if !ok {
		return nil, fileError("the file has no length")
	}
	size, ok := enginekit.Integer(file.Lookup("chunkSize"))
	if !ok || size <= 0 {
		return nil, fileError("the file has no chunkSize")
	}
	data := []byte{}
	if length > 0 {
		chunks, err := c.query("chunks", bson.D{{Key: "filter", Value: bson.D{{Key: "files_id", Value: file.Lookup("_id")}}},
			{Key: "sort", Value: bson.D{{Key: "n", Value: int32(1)}}}})
		if err != nil {
			return nil, err
		}
		for i, chunk := range chunks {
			n, _ := enginekit.Integer(chunk.Lookup("n"))
			_, part, _ := chunk.Lookup("data").BinaryOK()
			switch {
			case int64(len(data)) >= length && len(part) > 0:
				return nil, fileError("ExtraChunk: there are more chunks than the file's length needs")
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
	}
	return bson.Binary{Data: data}, nil
}

// change updates documents of one of the bucket's collections.
func (c *call) change(part string, filter, update bson.D, many bool) (int64, *result.Error) {
	statement := bson.D{{Key: "q", Value: filter}, {Key: "u", Value: update}}
	name := "update"
	if many {
		statement, name = append(statement, bson.E{Key: "multi", Value: true}), "update of many"
	}
	return c.mutate(part, "update", name, bson.E{Key: "updates", Value: bson.A{statement}})
}

func (c *call) mutate(part, command, operation string, body bson.E) (int64, *result.Error) {
	d := bson.D{{Key: command, Value: c.entity.(*bucket).name + "." + part}, body, {Key: "ordered", Value: true}}
	r, err := c.do(c.writing(command, operation, fixed(d)))
	if err := raised(r, err); err != nil {
		return 0, err
	}
	n, _ := enginekit.Integer(r.doc.Lookup("n"))
	return n, nil
}

// deleteFiles deletes files first and their chunks after.
func (c *call) deleteFiles(ids []any) *result.Error {
	filter := func(field string) (bson.D, int32) {
		if len(ids) == 1 {
			return bson.D{{Key: field, Value: ids[0]}}, 1
		}
		return bson.D{{Key: field, Value: bson.D{{Key: "$in", Value: ids}}}}, 0
	}
	q, limit := filter("_id")
	name := "delete"
	if limit == 0 {
		name = "delete of many"
	}
	n, err := c.mutate("files", "delete", name, bson.E{Key: "deletes", Value: bson.A{bson.D{{Key: "q", Value: q}, {Key: "limit", Value: limit}}}})
	if err != nil {
		return err
	}
	q, _ = filter("files_id")
	if _, err := c.mutate("chunks", "delete", "delete of many", bson.E{Key: "deletes",
		Value: bson.A{bson.D{{Key: "q", Value: q}, {Key: "limit", Value: int32(0)}}}}); err != nil {
		return err
	}
	if n == 0 {
		return fileError("FileNotFound: there is no file with this id")
	}
	return nil
}

// upload writes chunks and then the file, after making sure of the indexes.
func (c *call) upload(id any) *result.Error {
	data, bad := c.Source()
	if bad != nil {
		return argument(bad.Error())
	}
	size := c.entity.(*bucket).chunk
	if c.Has("chunkSizeBytes") {
		if size = c.Number("chunkSizeBytes"); size <= 0 {
			return argument("chunkSizeBytes must be positive")
		}
	}
	if err := c.indexes(); err != nil {
		return err
	}
	for n, rest := int32(0), data; len(rest) > 0; n++ {
		part := rest[:min(size, int64(len(rest)))]
		rest = rest[len(part):]
		chunk := bson.D{{Key: "_id", Value: bson.NewObjectID()}, {Key: "files_id", Value: id}, {Key: "n", Value: n},
			{Key: "data", Value: bson.Binary{Data: part}}}
		if _, err := c.mutate("chunks", "insert", "insert", bson.E{Key: "documents", Value: bson.A{chunk}}); err != nil {
			return err
		}
	}
	file := bson.D{{Key: "_id", Value: id}, {Key: "length", Value: int64(len(data))}, {Key: "chunkSize", Value: int32(size)},
		{Key: "uploadDate", Value: bson.NewDateTimeFromTime(c.client.driver.options.Now())}, {Key: "filename", Value: c.Arg("filename")}}
	file = c.copyArgs(file, "metadata", "contentType", "aliases")
	_, err := c.mutate("files", "insert", "insert", bson.E{Key: "documents", Value: bson.A{file}})
	return err
}

// indexes creates the bucket's indexes if it has no files yet (GridFS,
// "Before write operations").
func (c *call) indexes() *result.Error {
	d := bson.D{{Key: "find", Value: c.entity.(*bucket).name + ".files"}, {Key: "filter", Value: bson.D{}},
		{Key: "projection", Value: bson.D{{Key: "_id", Value: int32(1)}}}, {Key: "limit", Value: int32(1)}, {Key: "singleBatch", Value: true}}
	probe := c.read("find", fixed(d))
	probe.preference = selection.Preference{Hedge: probe.preference.Hedge}
	r, err := c.do(probe)
	if err != nil {
		return err
	}
	if array, ok := r.doc.Lookup("cursor", "firstBatch").ArrayOK(); ok {
		if values, _ := array.Values(); len(values) > 0 {
			return nil
		}
	}
	for _, i := range []struct {
		part string
		key  bson.D
		name string
		uniq bool
	}{
		{"files", bson.D{{Key: "filename", Value: int32(1)}, {Key: "uploadDate", Value: int32(1)}}, "filename_1_uploadDate_1", false},
		{"chunks", bson.D{{Key: "files_id", Value: int32(1)}, {Key: "n", Value: int32(1)}}, "files_id_1_n_1", true},
	} {
		coll := c.entity.(*bucket).name + "." + i.part
		list := c.enumerate("listIndexes", bson.D{{Key: "listIndexes", Value: coll}, {Key: "cursor", Value: bson.D{}}})
		r, err := c.do(list)
		if err != nil && err.Code != namespaceNotFound {
			return err
		}
		if err == nil && hasIndex(r.doc, i.name) {
			continue
		}
		index := bson.D{{Key: "key", Value: i.key}, {Key: "name", Value: i.name}}
		if i.uniq {
			index = append(index, bson.E{Key: "unique", Value: true})
		}
		if err := c.perform("createIndexes", bson.D{{Key: "createIndexes", Value: coll}, {Key: "indexes", Value: bson.A{index}}}, 0); err != nil {
			return err
		}
	}
	return nil
}

func hasIndex(reply bson.Raw, name string) bool {
	array, ok := reply.Lookup("cursor", "firstBatch").ArrayOK()
	if !ok {
		return false
	}
	values, _ := array.Values()
	for _, v := range values {
		if n, _ := lookupIn(v, "name"); n.Equal(bson.RawValue{Type: bson.TypeString, Value: stringValue(name)}) {
			return true
		}
	}
	return false
}

func stringValue(s string) []byte {
	_, data, _ := bson.MarshalValue(s)
	return data
}
