package deployment

import (
	"context"
	"strings"
	"testing"
)

func TestParseURIOption(t *testing.T) {
	for _, r := range []struct {
		reason, text string
		ok           bool
	}{
		{"an option", "compressors=zlib", true},
		{"a value with a sign of its own", "readPreferenceTags=dc:a=b", true},
		{"no value", "compressors", false},
		{"an empty value", "compressors=", false},
		{"no name", "=zlib", false},
		{"two options", "a&b=c", false},
	} {
		if o, err := ParseURIOption(r.text); (err == nil) != r.ok || r.ok && o.Name+"="+o.Value != r.text {
			t.Errorf("%s: %v %v", r.reason, o, err)
		}
	}
}

func TestCheckURIOptions(t *testing.T) {
	for _, r := range []struct {
		reason string
		option URIOption
		ok     bool
	}{
		{"a compressor", URIOption{"compressors", "zlib"}, true},
		{"a number that is none", URIOption{"maxPoolSize", "many"}, false},
		{"options that exclude each other", URIOption{"loadBalanced", "yes"}, false},
	} {
		if err := CheckURIOptions([]URIOption{r.option}); (err == nil) != r.ok {
			t.Errorf("%s: %v", r.reason, err)
		}
	}
	if err := CheckURIOptions(nil); err != nil {
		t.Error(err)
	}
}

// Each connection string has the options; the source below gets back what it lent.
func TestWithURIOptions(t *testing.T) {
	inner, err := OpenEmbedded(t.Context(), EmbeddedOptions{Topologies: []Topology{Sharded}, Auth: new(bool)})
	if err != nil {
		t.Fatal(err)
	}
	s := WithURIOptions(inner, []URIOption{{"compressors", "zlib"}, {"appName", "a b"}})
	defer func() { _ = s.Close() }()
	if WithURIOptions(inner, nil) != inner {
		t.Error("without options it is another source")
	}
	d, err := s.Acquire(context.Background(), 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, uri := range []string{d.URI(), d.SingleURI(), d.DirectURI(d.Description().Hosts[0])} {
		if !strings.Contains(uri, "compressors=zlib") || !strings.Contains(uri, "appName=a+b") {
			t.Errorf("%s lacks an option", uri)
		}
		if err := CheckURI(uri); err != nil {
			t.Error(err)
		}
	}
	if d.SingleURI() == d.URI() {
		t.Error("the connection string of a single mongos is that of all")
	}
	s.Release(d, false)
	again, err := s.Acquire(context.Background(), 0)
	if err != nil {
		t.Fatal(err)
	}
	if again != d {
		t.Error("the deployment that was given back was not lent again")
	}
	s.Release(again, false)
}
