package wire

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/golang/snappy"
	"github.com/klauspost/compress/zstd"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/wiremessage"
)

// Compressor is a compression that both sides know.
type Compressor = wiremessage.CompressorID

// The compressors of the specification "Wire Compression in Drivers".
const (
	Noop   = wiremessage.CompressorNoOp
	Snappy = wiremessage.CompressorSnappy
	Zlib   = wiremessage.CompressorZLib
	Zstd   = wiremessage.CompressorZstd
)

// compressorNames is how hello negotiates them; noop is not negotiated.
var compressorNames = []string{"snappy", "zlib", "zstd"}

// Compresses reports whether there is a compressor with a name in hello.
func Compresses(name string) bool { return slices.Contains(compressorNames, name) }

var errCompressed = errors.New("an OP_COMPRESSED cut short")

// Decompress unpacks an OP_COMPRESSED: the header as if the message had come
// uncompressed, its body, and the compressor, with which it is to be answered.
// It does not unpack more than the length in the message, which is
// bounded by MaxMessage.
func Decompress(h Header, body []byte) (Header, []byte, Compressor, error) {
	r := reader{rest: body}
	op, size, c := OpCode(r.int32()), r.int32(), Compressor(r.byte())
	if r.bad {
		return h, nil, c, errCompressed
	}
	if size < 0 || size > MaxMessage-HeaderSize {
		return h, nil, c, fmt.Errorf("an OP_COMPRESSED that unpacks to %d bytes", size)
	}
	if op == OpCompressed {
		return h, nil, c, errors.New("an OP_COMPRESSED in an OP_COMPRESSED")
	}
	out, err := unpack(c, r.rest, int(size))
	if err != nil {
		return h, nil, c, fmt.Errorf("unpack an OP_COMPRESSED: %w", err)
	}
	if len(out) != int(size) {
		return h, nil, c, fmt.Errorf("an OP_COMPRESSED of %d bytes that says %d", len(out), size)
	}
	h.OpCode, h.Length = op, size+HeaderSize
	return h, out, c, nil
}

func unpack(c Compressor, packed []byte, size int) ([]byte, error) {
	switch c {
	case Noop:
		return packed, nil
	case Snappy:
		n, err := snappy.DecodedLen(packed)
		if err != nil {
			return nil, err
		}
		if n != size {
			return nil, fmt.Errorf("%d bytes, not %d", n, size)
		}
		return snappy.Decode(nil, packed)
	case Zlib:
		z, err := zlib.NewReader(bytes.NewReader(packed))
		if err != nil {
			return nil, err
		}
		return readUpTo(z, size)
	case Zstd:
		z, err := zstd.NewReader(bytes.NewReader(packed), zstd.WithDecoderConcurrency(1),
			zstd.WithDecoderMaxMemory(MaxMessage))
		if err != nil {
			return nil, err
		}
		defer z.Close()
		return readUpTo(z, size)
	}
	return nil, fmt.Errorf("unknown compressor %d", c)
}

// readUpTo reads size bytes and one more, so that a stream that holds too
// much is seen without being read whole.
func readUpTo(r io.Reader, size int) ([]byte, error) {
	return io.ReadAll(io.LimitReader(r, int64(size)+1))
}

// Compress packs a whole message. The header stays but for opcode and length.
func Compress(message []byte, c Compressor) ([]byte, error) {
	h := ParseHeader([HeaderSize]byte(message))
	body := message[HeaderSize:]
	packed, err := driver.CompressPayload(body, driver.CompressionOpts{
		Compressor: c, ZlibLevel: wiremessage.DefaultZlibLevel, ZstdLevel: wiremessage.DefaultZstdLevel})
	if err != nil {
		return nil, err
	}
	out := appendHeader(make([]byte, 0, len(packed)+HeaderSize+9), h.RequestID, h.ResponseTo, OpCompressed)
	out = binary.LittleEndian.AppendUint32(out, uint32(h.OpCode))
	out = binary.LittleEndian.AppendUint32(out, uint32(len(body)))
	return finish(append(append(out, byte(c)), packed...)), nil
}
