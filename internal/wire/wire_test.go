package wire_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/klauspost/compress/zstd"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/internal/wire"
)

var doc = testkit.Raw // a document in BSON

func ping(t testing.TB) bson.Raw {
	return doc(t, bson.D{{Key: "ping", Value: 1}, {Key: "$db", Value: "admin"}})
}

func read(message []byte) (wire.Header, wire.Msg, error) {
	h, body, err := wire.ReadMessage(bytes.NewReader(message))
	if err != nil {
		return h, wire.Msg{}, err
	}
	m, err := wire.ParseMsg(h, body)
	return h, m, err
}

func int32s(n int) []byte { return binary.LittleEndian.AppendUint32(nil, uint32(n)) }

// message returns an OP_MSG with the given sections and a valid length.
func message(flags uint32, sections ...[]byte) []byte {
	body := bytes.Join(sections, nil)
	out := bytes.Join([][]byte{int32s(20 + len(body)), int32s(7), int32s(0), int32s(2013), int32s(int(flags))}, nil)
	return append(out, body...)
}

func kind0(raw []byte) []byte { return append([]byte{0}, raw...) }

func kind1(name string, docs ...[]byte) []byte {
	payload := append([]byte(name), 0)
	payload = append(payload, bytes.Join(docs, nil)...)
	return append(append([]byte{1}, int32s(len(payload)+4)...), payload...)
}

func TestParseMsg(t *testing.T) {
	p := ping(t)
	one := doc(t, bson.D{{Key: "_id", Value: int32(1)}})
	insert := doc(t, bson.D{{Key: "insert", Value: "c"}, {Key: "$db", Value: "d"}})
	huge := doc(t, bson.D{{Key: "x", Value: bson.Binary{Data: make([]byte, wire.MaxInternal-12)}}})
	with := func(raw bson.Raw, at int, b byte) []byte { // replaces a byte; a negative index counts from the end
		c := bytes.Clone(raw)
		c[(at+len(c))%len(c)] = b
		return kind0(c)
	}
	yes := bson.D{{Key: "b", Value: true}}
	for _, row := range []struct {
		reason  string
		message []byte
		code    int32  // of the error; -1: the connection is closed; 0: no error
		text    string // part of the error message
	}{
		{"ping", message(0, kind0(p)), 0, ""},
		{"unknown optional flag bit", message(1<<20, kind0(p)), 0, ""},
		{"unknown required flag bit", message(1<<2, kind0(p)), -1, ""},
		{"highest required flag bit", message(1<<15, kind0(p)), -1, ""},
		{"sequence before the body", message(0, kind1("documents", one), kind0(insert)), 0, ""},
		{"empty sequence", message(0, kind0(insert), kind1("documents")), 0, ""},
		{"no section", message(0), 40587, "must have a body"},
		{"two bodies", message(0, kind0(p), kind0(p)), 40430, "Multiple body sections"},
		{"unknown section kind", message(0, []byte{2}, p), 40432, "Unknown section kind 2"},
		{"duplicate sequence", message(0, kind0(insert), kind1("a", one), kind1("a", one)), 40431,
			"Duplicate document sequence: a"},
		{"sequence with the name of a field", message(0, kind0(insert), kind1("insert", one)), 40433, "sequence insert"},
		{"body section without a document", message(0, []byte{0}), 22, "at least 5 bytes"},
		{"sequence without a length", message(0, kind0(p), []byte{1, 9}), 15, ""},
		{"sequence with an unterminated name", message(0, kind0(p), []byte{1, 6, 0, 0, 0, 'a', 'b'}), 15, ""},
		{"length of a sequence too large", message(0, kind0(p), []byte{1, 99, 0, 0, 0, 'a', 0}), 15,
			"Invalid advance (95) past end of buffer[2]"},
		{"length of a sequence too small", message(0, kind0(p), []byte{1, 3, 0, 0, 0, 'a', 0}), 15, "(4294967295)"},
		{"length of a document too large", message(0, with(p, 0, 200)), 22, "Incorrect BSON length"},
		{"negative length of a document", message(0, with(p, 3, 0xff)), 22, "at least 5 bytes"},
		{"no terminator", message(0, with(p, -1, 1)), 22, "not terminated with EOO"},
		{"unknown type", message(0, with(p, 4, 0x50)), 22, "Unrecognized BSON type 80 in element with field name 'ping'"},
		{"invalid boolean", message(0, with(doc(t, yes), 7, 2)), 22, "BSON bool is neither false nor true"},
		{"error after the _id", message(0, with(doc(t, append(bson.D{{Key: "_id", Value: int32(5)}}, yes...)), 16, 2)), 22,
			"'b' in object with _id: {\"$numberInt\":\"5\"}"},
		{"error in a nested document", message(0, with(doc(t, bson.D{{Key: "a", Value: yes}}), 14, 2)), 22, "'a.b'"},
		{"document too large", message(0, kind0(huge)), 10334, "BSONObj size: 16793601"},
		{"two sequences, like bulkWrite", message(0, kind0(insert), kind1("a", one), kind1("b", one)), 0, ""},
		{"three sequences", message(0, kind0(insert), kind1("a"), kind1("b"), kind1("c")), -1, ""},
		{"too short for its checksum", message(1, []byte{0, 5}), -1, ""},
		{"invalid checksum", message(1, kind0(p), int32s(1)), -1, ""},
		{"a value of every type", message(0, kind0(testkit.Extended[bson.Raw](t, testkit.EveryType))), 0, ""},
		{"200 nested documents", message(0, kind0(nested(t, 200))), 0, ""},
		{"201 nested documents", message(0, kind0(nested(t, 201))), 15, ""},
	} {
		_, _, err := read(row.message)
		var refused *wire.Error
		switch {
		case row.code == 0 && err != nil:
			t.Errorf("%s: %v", row.reason, err)
		case row.code == -1 && (err == nil || errors.As(err, &refused)):
			t.Errorf("%s: got %v, want the connection to be closed", row.reason, err)
		case row.code > 0 && (!errors.As(err, &refused) || refused.Code != row.code ||
			!strings.Contains(refused.Error(), row.text)):
			t.Errorf("%s: got %v, want code %d and %q", row.reason, err, row.code, row.text)
		}
	}
}

func nested(t testing.TB, depth int) bson.Raw {
	v := bson.D{}
	for range depth {
		v = bson.D{{Key: "a", Value: v}}
	}
	return doc(t, v)
}

func TestReadMessage(t *testing.T) {
	whole := message(0, kind0(ping(t)))
	length := func(n int) []byte { return append(int32s(n), whole[4:]...) }
	for _, row := range []struct {
		reason string
		in     []byte
		want   error // nil: another error, before the body is read
	}{
		{"empty input", nil, io.EOF},
		{"truncated header", whole[:9], io.ErrUnexpectedEOF},
		{"truncated body", whole[:30], io.ErrUnexpectedEOF},
		{"no body", whole[:16], io.ErrUnexpectedEOF},
		{"length 0", length(0), nil},
		{"length 15", length(15), nil},
		{"negative length", length(-5), nil},
		{"length above the maximum", length(wire.MaxMessage + 1), nil},
		{"HTTP", []byte("GET / HTTP/1.1\r\n\r\n"), wire.ErrHTTP},
	} {
		_, _, err := wire.ReadMessage(bytes.NewReader(row.in))
		if err == nil || row.want != nil && !errors.Is(err, row.want) || row.want == nil &&
			errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%s: got %v, want %v", row.reason, err, row.want)
		}
	}
	if _, body, err := wire.ReadMessage(iotest.OneByteReader(bytes.NewReader(whole))); err != nil ||
		!bytes.Equal(body, whole[16:]) {
		t.Errorf("byte by byte: %v", err)
	}
	for _, size := range []int{1<<16 - 1, 1 << 16, 1<<16 + 1, 3 << 16, 5 << 20} {
		// around the size of the first allocation, and above
		in := append(append(int32s(size+16), make([]byte, 12)...), bytes.Repeat([]byte{7}, size)...)
		if _, got, err := wire.ReadMessage(bytes.NewReader(in)); err != nil || !bytes.Equal(got, in[16:]) {
			t.Errorf("%d bytes: %d read, %v", size, len(got), err)
		}
	}
}

// Memory is allocated for received bytes, not for the length in the header.
func TestLengthAllocation(t *testing.T) {
	in := append(append(int32s(wire.MaxMessage), make([]byte, 12)...), make([]byte, 100)...)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, _, err := wire.ReadMessage(bytes.NewReader(in)); err == nil {
		t.Fatal("a truncated message was accepted")
	}
	runtime.ReadMemStats(&after)
	if got := after.TotalAlloc - before.TotalAlloc; got > 1<<20 {
		t.Errorf("%d bytes allocated for a message of 116", got)
	}
}

func TestChecksum(t *testing.T) {
	good := wire.AppendMsg(nil, 7, 0, wire.ChecksumPresent, ping(t))
	if _, _, err := read(good); err != nil {
		t.Fatalf("valid checksum: %v", err)
	}
	for bit := range len(good) * 8 {
		if i := bit / 8; i >= 4 && (i < 12 || i >= 20) { // other errors detect a change of length, opcode or flags
			bad := bytes.Clone(good)
			bad[i] ^= 1 << (bit % 8)
			if _, _, err := read(bad); err == nil {
				t.Errorf("a change of bit %d of byte %d was not detected", bit%8, i)
			}
		}
	}
}

func TestSingle(t *testing.T) {
	insert, one := bson.D{{Key: "insert", Value: "c"}, {Key: "$db", Value: "d"}}, bson.D{{Key: "_id", Value: int32(1)}}
	_, m, err := read(message(0, kind0(doc(t, insert)), kind1("documents", slices.Repeat([][]byte{doc(t, one)}, 101)...)))
	testkit.Check(t, err)
	want := doc(t, append(insert, bson.E{Key: "documents", Value: slices.Repeat(bson.A{one}, 101)}))
	testkit.Equal(t, "document", m.Document(), want)
	again, err := wire.Sequenced(want, "documents", "ops")
	testkit.Check(t, err)
	testkit.Equal(t, "the body", again.Body, doc(t, insert))
	_, got, err := read(again.Append(nil, 7, 0))
	testkit.Check(t, err)
	testkit.Equal(t, "message", got, m)
	if _, err := wire.Sequenced(doc(t, bson.D{{Key: "ops", Value: 1}}), "ops"); err == nil {
		t.Error("a number is a document sequence")
	}
}

func TestCompressed(t *testing.T) {
	plain := message(0, kind0(doc(t, bson.D{{Key: "ping", Value: strings.Repeat("x", 5000)}})))
	all := map[string]wire.Compressor{"snappy": wire.Snappy, "zlib": wire.Zlib, "zstd": wire.Zstd, "": wire.Noop}
	for name, c := range all {
		testkit.Equal(t, "negotiable: "+name, wire.Negotiable(name), c != wire.Noop)
		packed, err := wire.Compress(plain, c)
		testkit.Check(t, err)
		if c != wire.Noop && len(packed) > len(plain)/10 {
			t.Errorf("compressor %d: %d bytes of %d", c, len(packed), len(plain))
		}
		h, body, err := wire.ReadMessage(bytes.NewReader(packed))
		testkit.Check(t, err)
		h, body, used, err := wire.Decompress(h, body)
		if err != nil || used != c || h.OpCode != wire.OpMsg || h.RequestID != 7 || !bytes.Equal(body, plain[16:]) {
			t.Errorf("compressor %d: got %v with %d, %v", c, h, used, err)
		}
		for _, size := range []int{len(plain) - 17, len(plain) - 15, 0, -1, wire.MaxMessage} {
			invalid := bytes.Clone(packed)
			copy(invalid[20:], int32s(size))
			h, body, err := wire.ReadMessage(bytes.NewReader(invalid))
			testkit.Check(t, err)
			if _, _, _, err := wire.Decompress(h, body); err == nil {
				t.Errorf("compressor %d: a wrong size of %d was accepted", c, size)
			}
		}
	}
}

// A frame of zstd contains its content size, however small it is. PyMongo 4.8 cannot read other frames.
func TestContentSize(t *testing.T) {
	for _, n := range []int{1, 100, 5000} {
		packed, err := wire.Compress(message(0, kind0(doc(t, bson.D{{Key: "ping", Value: strings.Repeat("x", n)}}))),
			wire.Zstd)
		testkit.Check(t, err)
		var h zstd.Header
		testkit.Check(t, h.Decode(packed[25:]))
		testkit.Equal(t, fmt.Sprint(n, " bytes"), h.HasFCS, true)
	}
}

func TestInvalidCompressed(t *testing.T) {
	packed := func(opcode, size int, rest ...byte) []byte {
		return bytes.Join([][]byte{int32s(opcode), int32s(size), rest}, nil)
	}
	for reason, body := range map[string][]byte{
		"truncated": {1, 2}, "unknown compressor": packed(2013, 1, 9, 0), "compressed twice": packed(2012, 1, 0, 0),
		"not snappy": packed(2013, 3, 1, 3, 9, 9), "not zlib": packed(2013, 3, 2, 3, 9, 9),
		"not zstd": packed(2013, 3, 3, 3, 9, 9),
	} {
		if _, _, _, err := wire.Decompress(wire.Header{OpCode: wire.OpCompressed}, body); err == nil {
			t.Errorf("%s: decompressed", reason)
		}
	}
}

func query(doc bson.Raw) []byte {
	body := slices.Concat(int32s(0), []byte("d.$cmd\x00"), int32s(0), int32s(-1), doc)
	return wire.AppendMessage(nil, wire.Header{RequestID: 1, OpCode: wire.OpQuery}, body)
}

func TestLegacy(t *testing.T) {
	_, body, err := wire.ReadMessage(bytes.NewReader(query(ping(t))))
	testkit.Check(t, err)
	if namespace, doc, err := wire.ParseQuery(body); err != nil || namespace != "d.$cmd" || !bytes.Equal(doc, ping(t)) {
		t.Errorf("got %s %v, %v", namespace, doc, err)
	}
	for n := range body {
		if _, _, err := wire.ParseQuery(body[:n]); err == nil {
			t.Errorf("the first %d bytes of %d were accepted", n, len(body))
		}
	}
}

// FuzzRead parses messages as the server does. The seeds include every prefix of a document with a value of each type.
func FuzzRead(f *testing.F) {
	p := ping(f)
	for _, seed := range [][]byte{
		message(0, kind0(p)), message(0, kind0(p), kind1("documents", p, p)),
		wire.AppendMsg(nil, 1, 2, wire.ChecksumPresent, p),
		query(p), wire.AppendReply(nil, 1, 2, p), message(0, kind0(nested(f, 120))),
		message(0, kind0(testkit.Extended[bson.Raw](f, testkit.EveryType))), []byte("GET / HTTP/1.1\r\n\r\n"),
	} {
		f.Add(seed)
		for _, c := range []wire.Compressor{wire.Snappy, wire.Zlib, wire.Zstd} {
			if packed, err := wire.Compress(seed, c); err == nil {
				f.Add(packed)
			}
		}
	}
	all := testkit.Extended[bson.Raw](f, testkit.EveryType)
	for n := range all {
		cut := bytes.Clone(all[:n])
		if n >= 5 {
			copy(cut, int32s(n))
			cut[n-1] = 0
		}
		f.Add(message(0, kind0(cut)))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		h, body, err := wire.ReadMessage(bytes.NewReader(in))
		if err == nil && h.OpCode == wire.OpCompressed {
			h, body, _, err = wire.Decompress(h, body)
		}
		if err != nil {
			return
		}
		m, err1 := wire.ParseMsg(h, body)
		_, q, err2 := wire.ParseQuery(body)
		var docs []bson.Raw
		switch {
		case h.OpCode == wire.OpMsg && err1 == nil:
			docs = []bson.Raw{m.Document()}
		case h.OpCode == wire.OpQuery && err2 == nil:
			docs = []bson.Raw{q}
		}
		for _, d := range docs {
			// The driver must be able to read what our validation accepts.
			_, err := d.Elements()
			if err := errors.Join(err, bson.Unmarshal(d, new(bson.D))); err != nil {
				t.Errorf("validated %x, but: %v", []byte(d), err)
			}
		}
	})
}
