package exchange_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/unified-test-runner/utr/internal/exchange"
	"github.com/unified-test-runner/utr/internal/testkit"
)

type part struct {
	Text  string
	Bytes []byte
}

type whole struct {
	Name        string
	Code        int
	HasCode     bool
	First       *part
	Second      *part
	Parts       []part
	Pointers    []*part
	ByNumber    map[int][]byte
	Unmentioned string
}

type text []byte

type partRecord struct {
	Text  string
	Bytes text
}

type common struct {
	Name string
	Code *int `if:"HasCode"`
}

type record struct {
	common
	Text     string `value:"First.Text|Second.Text"`
	Own      string `value:"-"`
	Parts    []partRecord
	Pointers []partRecord
	ByNumber map[int]text
}

func (r *record) Written(from any) { r.Own = "of " + from.(*whole).Name }
func (r *record) Reading(into any) { into.(*whole).Second = &part{} }

// What a record was written from can be read from it again, but for what it does not have.
func TestThereAndBack(t *testing.T) {
	for _, value := range []whole{
		{Second: &part{}},
		{Name: "a", HasCode: true, Second: &part{Text: "second"}, Parts: []part{{"x", []byte{1}}, {}}},
		{Code: 7, HasCode: true, Second: &part{}, Pointers: []*part{{Text: "y"}}, ByNumber: map[int][]byte{3: {4}}},
	} {
		var r record
		exchange.Write(&r, &value)
		testkit.Equal(t, "what a record adds", r.Own, "of "+value.Name)
		testkit.Equal(t, "a code", r.Code != nil, value.HasCode)
		var again whole
		exchange.Read(&r, &again)
		if difference := cmp.Diff(value, again); difference != "" {
			t.Error(difference)
		}
	}
}

// The first field that exists is meant, though it may be empty.
func TestAlternatives(t *testing.T) {
	for _, row := range []struct {
		value whole
		want  string
	}{
		{whole{First: &part{Text: "first"}, Second: &part{Text: "second"}}, "first"},
		{whole{First: &part{}, Second: &part{Text: "second"}}, ""},
		{whole{Second: &part{Text: "second"}}, "second"},
		{whole{}, ""},
	} {
		var r record
		exchange.Write(&r, &row.value)
		testkit.Equal(t, "the text", r.Text, row.want)
	}
}
