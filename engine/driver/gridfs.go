package driver

import (
	"bytes"
	"io"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/unified-test-runner/utr/engine/enginekit"
	"github.com/unified-test-runner/utr/entities"
)

// bucketRows lacks deleteByName and renameByName: the driver does not have them.
func bucketRows() []row {
	const on = entities.Bucket
	type uploading = *filled[options.GridFSUploadOptions]
	of := func(c *call) *bucket { return c.Entity.(*bucket) }
	return []row{
		calling(on, "find", "", "filter", of, (*bucket).Find),
		silently(on, "delete", "", func(c *call) error { return of(c).Delete(c.ctx, c.any("id")) }),
		silently(on, "drop", "", func(c *call) error { return of(c).Drop(c.ctx) }),
		silently(on, "rename", "", func(c *call) error {
			return of(c).Rename(c.ctx, c.any("id"), c.Text("newFilename"))
		}),
		plainly(on, "download", "", func(c *call) (any, error) {
			return downloaded(func(to io.Writer) (int64, error) { return of(c).DownloadToStream(c.ctx, c.any("id"), to) })
		}),
		with(on, "downloadByName", "", func(c *call, o *filled[options.GridFSNameOptions]) (any, error) {
			return downloaded(func(to io.Writer) (int64, error) {
				return of(c).DownloadToStreamByName(c.ctx, c.Text("filename"), to, o)
			})
		}),
		with(on, "upload", "", func(c *call, o uploading) (any, error) {
			data, err := c.Source()
			if err != nil {
				return nil, err
			}
			return of(c).UploadFromStream(c.ctx, c.Text("filename"), bytes.NewReader(data), o)
		}),
		with(on, "uploadWithId", "", func(c *call, o uploading) (any, error) {
			data, err := c.Source()
			if err != nil {
				return nil, err
			}
			return enginekit.Nothing{}, of(c).UploadFromStreamWithID(c.ctx, c.any("id"), c.Text("filename"),
				bytes.NewReader(data), o)
		}),
	}
}

// downloaded returns a download as $$matchesHexBytes expects it.
func downloaded(download func(to io.Writer) (int64, error)) (any, error) {
	var data bytes.Buffer
	if _, err := download(&data); err != nil {
		return nil, err
	}
	return bson.Binary{Data: data.Bytes()}, nil
}
