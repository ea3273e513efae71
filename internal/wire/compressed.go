package wire

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/golang/snappy"
	"github.com/klauspost/compress/zstd"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/wiremessage"
)

// Compressor identifies a compression algorithm.
type Compressor = wiremessage.CompressorID

// The compressors (specification "Wire Compression in Drivers").
const (
	Noop   = wiremessage.CompressorNoOp
	Snappy = wiremessage.CompressorSnappy
	Zlib   = wiremessage.CompressorZLib
	Zstd   = wiremessage.CompressorZstd
)

// Negotiable reports whether hello can negotiate the named compressor.
func Negotiable(name string) bool { return slices.Contains([]string{"snappy", "zlib", "zstd"}, name) }

// Decompress decompresses the body of an OP_COMPRESSED. It returns header and body of the original message, and the
// compressor. The reply must use the same compressor. Decompress never decompresses more than the length in the
// message, and this length is at most MaxMessage.
func Decompress(h Header, body []byte) (Header, []byte, Compressor, error) {
	r := reader{rest: body}
	op, size, c := OpCode(r.int32()), r.int32(), Compressor(r.byte())
	switch {
	case r.bad:
		return h, nil, c, errors.New("truncated OP_COMPRESSED")
	case size < 0 || size > MaxMessage-headerSize:
		return h, nil, c, fmt.Errorf("OP_COMPRESSED with an uncompressed size of %d bytes", size)
	case op == OpCompressed:
		return h, nil, c, errors.New("nested OP_COMPRESSED")
	}
	out, err := decompress(c, r.rest, int(size))
	if err == nil && len(out) != int(size) {
		err = fmt.Errorf("got %d bytes, want %d", len(out), size)
	}
	if err != nil {
		return h, nil, c, fmt.Errorf("decompress OP_COMPRESSED: %w", err)
	}
	h.OpCode, h.Length = op, size+headerSize
	return h, out, c, nil
}

// decompress reads at most size+1 bytes, enough to detect a stream that is too long.
func decompress(c Compressor, packed []byte, size int) ([]byte, error) {
	switch c {
	case Noop:
		return packed, nil
	case Snappy:
		n, err := snappy.DecodedLen(packed)
		if err != nil {
			return nil, err
		}
		if n != size {
			return nil, fmt.Errorf("got %d bytes, want %d", n, size)
		}
		return snappy.Decode(nil, packed)
	case Zlib:
		z, err := zlib.NewReader(bytes.NewReader(packed))
		if err != nil {
			return nil, err
		}
		return io.ReadAll(io.LimitReader(z, int64(size)+1))
	case Zstd:
		z, err := zstd.NewReader(bytes.NewReader(packed), zstd.WithDecoderConcurrency(1),
			zstd.WithDecoderMaxMemory(MaxMessage))
		if err != nil {
			return nil, err
		}
		defer z.Close()
		return io.ReadAll(io.LimitReader(z, int64(size)+1))
	}
	return nil, fmt.Errorf("unknown compressor %d", c)
}

// Compress compresses a complete message. Only opcode and length of the header change.
func Compress(message []byte, c Compressor) ([]byte, error) {
	h := parseHeader(message)
	body := message[headerSize:]
	packed, err := compress(body, c)
	if err != nil {
		return nil, err
	}
	start, out := wiremessage.AppendHeaderStart(nil, h.RequestID, h.ResponseTo, OpCompressed)
	out = binary.LittleEndian.AppendUint32(out, uint32(h.OpCode))
	out = binary.LittleEndian.AppendUint32(out, uint32(len(body)))
	return finish(append(append(out, byte(c)), packed...), start), nil
}

// zstdFrames writes frames with their content size. Some drivers require it (PyMongo 4.8).
var zstdFrames = sync.OnceValues(func() (*zstd.Encoder, error) {
	return zstd.NewWriter(nil, zstd.WithSingleSegment(true), zstd.WithEncoderConcurrency(1))
})

func compress(body []byte, c Compressor) ([]byte, error) {
	if c != Zstd {
		return driver.CompressPayload(body, driver.CompressionOpts{Compressor: c, ZlibLevel: wiremessage.DefaultZlibLevel})
	}
	encoder, err := zstdFrames()
	if err != nil {
		return nil, err
	}
	return encoder.EncodeAll(body, nil), nil
}
