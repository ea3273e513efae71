package driver

import (
	"bytes"

	"github.com/unified-test-runner/utr/engine/enginekit"
	"github.com/unified-test-runner/utr/specs/operations"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// bucketRows are operations of GridFS buckets. The driver deletes and renames
// by id only.
func bucketRows() []row {
	upload := optionsFor[options.GridFSUploadOptions]()
	of := func(c *call) *bucket { return c.entity.(*bucket) }
	return []row{
		{operations.Bucket, "delete", "id", nil, func(c *call) (any, error) {
			return enginekit.Nothing{}, of(c).Delete(c.ctx, c.any("id"))
		}},
		{operations.Bucket, "download", "id", nil, func(c *call) (any, error) {
			var to bytes.Buffer
			_, err := of(c).DownloadToStream(c.ctx, c.any("id"), &to)
			return downloaded(&to, err)
		}},
		{operations.Bucket, "downloadByName", "filename", optionsFor[options.GridFSNameOptions](), func(c *call) (any, error) {
			var to bytes.Buffer
			_, err := of(c).DownloadToStreamByName(c.ctx, c.Text("filename"), &to, optionsOf[options.GridFSNameOptions](c))
			return downloaded(&to, err)
		}},
		{operations.Bucket, "drop", "", nil, func(c *call) (any, error) { return enginekit.Nothing{}, of(c).Drop(c.ctx) }},
		{operations.Bucket, "find", "filter", optionsFor[options.GridFSFindOptions](), func(c *call) (any, error) {
			cursor, err := of(c).Find(c.ctx, c.filter(), optionsOf[options.GridFSFindOptions](c))
			return all(c.ctx, cursor, err)
		}},
		{operations.Bucket, "rename", "id newFilename", nil, func(c *call) (any, error) {
			return enginekit.Nothing{}, of(c).Rename(c.ctx, c.any("id"), c.Text("newFilename"))
		}},
		{operations.Bucket, "upload", "filename source", upload, func(c *call) (any, error) {
			data, err := c.Source()
			if err != nil {
				return nil, argument("%v", err)
			}
			return of(c).UploadFromStream(c.ctx, c.Text("filename"), bytes.NewReader(data), optionsOf[options.GridFSUploadOptions](c))
		}},
		{operations.Bucket, "uploadWithId", "id filename source", upload, func(c *call) (any, error) {
			data, err := c.Source()
			if err != nil {
				return nil, argument("%v", err)
			}
			return enginekit.Nothing{}, of(c).UploadFromStreamWithID(c.ctx, c.any("id"), c.Text("filename"), bytes.NewReader(data),
				optionsOf[options.GridFSUploadOptions](c))
		}},
	}
}

// downloaded gives what was downloaded as $$matchesHexBytes reads it.
func downloaded(data *bytes.Buffer, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	return bson.Binary{Data: data.Bytes()}, nil
}
