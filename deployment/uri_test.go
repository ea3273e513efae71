package deployment

import (
	"strings"
	"testing"
)

func TestURI(t *testing.T) {
	for _, row := range []struct {
		reason, in string
		change     func(uri) uri
		want       string
	}{
		{"one host keeps all else", "mongodb://a:1,b:2/db?replicaSet=rs&appName=x", func(u uri) uri { return u.at("c:3") }, "mongodb://c:3/db?replicaSet=rs&appName=x"},
		{"a direct connection has no set name", "mongodb://a:1,b:2/?replicaSet=rs&tls=true", func(u uri) uri { return u.direct("b:2") }, "mongodb://b:2/?tls=true&directConnection=true"},
		{"nor is it load balanced", "mongodb://a:1/?loadBalanced=true", func(u uri) uri { return u.direct("a:1") }, "mongodb://a:1/?directConnection=true"},
		{"credentials pass through as written", "mongodb://u%40x:p%2Fq@a:1/admin", func(u uri) uri { return u.at("b:2") }, "mongodb://u%40x:p%2Fq@b:2/admin"},
		{"a user name may hold a colon and an at sign", "mongodb://u@x:p@a:1", func(u uri) uri { return u.at("b:2") }, "mongodb://u@x:p@b:2/"},
		{"a name in DNS implies TLS", "mongodb+srv://c.example.com/?srvMaxHosts=2", func(u uri) uri { return u.at("a:1") }, "mongodb://a:1/?tls=true"},
		{"unless it says otherwise", "mongodb+srv://c.example.com/?tls=false", func(u uri) uri { return u.at("a:1") }, "mongodb://a:1/?tls=false"},
		{"options match whatever their case", "mongodb://a:1/?REPLICASET=rs", func(u uri) uri { return u.direct("a:1") }, "mongodb://a:1/?directConnection=true"},
		{"options without a slash before them", "mongodb://a:1?w=1", func(u uri) uri { return u }, "mongodb://a:1/?w=1"},
		{"an address of version six", "mongodb://[::1]:27017/", func(u uri) uri { return u.direct("[::1]:2") }, "mongodb://[::1]:2/?directConnection=true"},
	} {
		u, err := parseURI(row.in)
		if err != nil {
			t.Errorf("%s: %v", row.reason, err)
			continue
		}
		if got := row.change(u).String(); got != row.want {
			t.Errorf("%s: got %s, want %s", row.reason, got, row.want)
		}
	}
}

func TestURIAuthenticates(t *testing.T) {
	for _, r := range []struct {
		reason, in string
		want       bool
	}{
		{"nobody", "mongodb://a/?tls=true", false},
		{"a user", "mongodb://u:p@a/", true},
		{"a certificate", "mongodb://a/?tls=true&authMechanism=MONGODB-X509", true},
		{"a token, whatever the case", "mongodb://a/?AUTHMECHANISM=MONGODB-OIDC", true},
	} {
		u, err := parseURI(r.in)
		if err != nil {
			t.Fatal(err)
		}
		if got := u.authenticates(); got != r.want {
			t.Errorf("%s: %t", r.reason, got)
		}
	}
}

func TestURIRefused(t *testing.T) {
	for reason, in := range map[string]string{
		"no scheme":            "u:secret@localhost",
		"another scheme":       "http://u:secret@localhost",
		"no host":              "mongodb://u:secret@/",
		"an empty host":        "mongodb://u:secret@a,,b/",
		"option with no value": "mongodb://u:secret@a/?w",
	} {
		_, err := parseURI(in)
		if err == nil {
			t.Errorf("%s: accepted", reason)
		} else if strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: the error tells the password: %v", reason, err)
		}
	}
}

func TestRedact(t *testing.T) {
	for in, want := range map[string]string{
		"mongodb://u:secret@a:1/?w=1":                                   "mongodb://***@a:1/?w=1",
		"mongodb+srv://u:se@cret@a/":                                    "mongodb+srv://***@a/",
		"mongodb://a/?authMechanismProperties=AWS_SESSION_TOKEN:secret": "mongodb://a/?authMechanismProperties=%2A%2A%2A",
		"mongodb://a:1/":                                                "mongodb://a:1/",
	} {
		if got := Redact(in); got != want {
			t.Errorf("Redact(%q) = %q, want %q", in, got, want)
		}
	}
}
