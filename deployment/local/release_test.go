package local

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
)

func bsonText(d bson.D) (string, error) {
	text, err := bson.MarshalExtJSON(d, false, false)
	return string(text), err
}

func TestParseVersion(t *testing.T) {
	for _, row := range []struct {
		reason, out string
		want        Version
		bad         bool
	}{
		{"4.2", "db version v4.2.24\ngit version: 5e4ec1d24431fcdd28b579a024c5c801b8cde4e2\nOpenSSL version: OpenSSL 1.1.1\n", Version{4, 2, 24}, false},
		{"4.4 and later", "db version v8.0.4\nBuild Info: {\n    \"version\": \"8.0.4\",\n    \"openSSLVersion\": \"OpenSSL 3.0.2\"\n}\n", Version{8, 0, 4}, false},
		{"a mongos", "mongos version v7.0.14\nBuild Info: {", Version{7, 0, 14}, false},
		{"a candidate", "db version v8.2.0-rc3-12-gabcdef", Version{8, 2, 0}, false},
		{"something before it", "WARNING: no locale\ndb version v6.0.1\r\n", Version{6, 0, 1}, false},
		{"another program", "ls (GNU coreutils) 9.1", Version{}, true},
		{"nothing", "", Version{}, true},
		{"a version of something else", "OpenSSL version: OpenSSL 1.1.1", Version{}, true},
	} {
		got, err := parseVersion(row.out)
		if got != row.want || (err != nil) != row.bad {
			t.Errorf("%s: got %v, %v", row.reason, got, err)
		}
	}
}

// script writes a program that a shell runs.
func script(t *testing.T, path, text string) string {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("the programs of this test are shell scripts")
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestFind(t *testing.T) {
	dir := t.TempDir()
	at := func(names ...string) string { return filepath.Join(append([]string{dir}, names...)...) }
	mongod := func(v string) string { return "echo db version v" + v }
	mongos := func(v string) string { return "echo mongos version v" + v }
	script(t, at("whole", "bin", "mongod"), mongod("8.0.4"))
	script(t, at("whole", "bin", "mongos"), mongos("8.0.4"))
	script(t, at("flat", "mongod"), mongod("4.2.24"))
	script(t, at("suffix", "mongod-7.0"), mongod("7.0.1"))
	script(t, at("suffix", "mongos-7.0"), mongos("7.0.1"))
	script(t, at("mixed", "mongod"), mongod("8.0.4"))
	script(t, at("mixed", "mongos"), mongos("7.0.1"))
	script(t, at("old", "mongod"), mongod("4.0.28"))
	script(t, at("broken", "mongod"), "echo mongod: error while loading shared libraries: libcrypto.so.1.1 >&2; exit 127")
	script(t, at("silent", "mongod"), "true")
	if err := os.MkdirAll(at("empty"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(at("plain"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", at("whole", "bin")+string(os.PathListSeparator)+os.Getenv("PATH"))
	for _, row := range []struct {
		reason, where string
		want          Release
		err           []string
	}{
		{"a release", at("whole"), Release{at("whole", "bin", "mongod"), at("whole", "bin", "mongos"), Version{8, 0, 4}}, nil},
		{"a folder of programs, without a mongos", at("flat"), Release{at("flat", "mongod"), "", Version{4, 2, 24}}, nil},
		{"a program", at("whole", "bin", "mongod"), Release{at("whole", "bin", "mongod"), at("whole", "bin", "mongos"), Version{8, 0, 4}}, nil},
		{"one with a version in its name", at("suffix", "mongod-7.0"), Release{at("suffix", "mongod-7.0"), at("suffix", "mongos-7.0"), Version{7, 0, 1}}, nil},
		{"a name in $PATH", "mongod", Release{at("whole", "bin", "mongod"), at("whole", "bin", "mongos"), Version{8, 0, 4}}, nil},
		{"a name that is not there", "mongod-of-nobody", Release{}, []string{"neither a folder here nor a program on $PATH"}},
		{"two versions", at("mixed"), Release{}, []string{"8.0.4", "7.0.1", "cannot be made of both"}},
		{"a version that is too old", at("old"), Release{}, []string{"4.0.28", "4.2 is the oldest"}},
		{"a library that is missing", at("broken"), Release{}, []string{"exit status 127", "libcrypto.so.1.1"}},
		{"a program that says nothing", at("silent"), Release{}, []string{"does not tell a version", "it said nothing"}},
		{"a folder without it", at("empty"), Release{}, []string{"there is no mongod in the folder", filepath.Join("empty", "bin", "mongod"), filepath.Join("empty", "mongod")}},
		{"a file that cannot be run", at("plain"), Release{}, []string{"not executable"}},
		{"nothing", at("nowhere"), Release{}, []string{"there is no "}},
	} {
		got, err := Find(context.Background(), row.where)
		if got != row.want || (err != nil) != (row.err != nil) {
			t.Errorf("%s: got %+v, %v", row.reason, got, err)
			continue
		}
		for _, part := range row.err {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%s: %v does not tell %q", row.reason, err, part)
			}
		}
	}
}

// A program that does not even tell its version is given up, with all that it
// started.
func TestFindIsInterrupted(t *testing.T) {
	path := script(t, filepath.Join(t.TempDir(), "mongod"), "sleep 600 & wait")
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Find(ctx, path); err == nil || !strings.Contains(err.Error(), "canceled") {
		t.Errorf("got %v", err)
	}
}

func TestEnvironmentKeepsSecrets(t *testing.T) {
	t.Setenv("UTR_URI", "mongodb://u:secret@h/")
	t.Setenv("UTR_PASSWORD", "secret")
	t.Setenv("HARMLESS", "kept")
	all := strings.Join(environment(), "\n")
	if strings.Contains(all, "secret") || !strings.Contains(all, "HARMLESS=kept") {
		t.Errorf("children get %s", all)
	}
}

func TestCan(t *testing.T) {
	bare := Release{Mongod: "/r/mongod", Version: Version{8, 0, 0}}
	for topology, want := range map[Topology]bool{Standalone: true, ReplicaSet: true, Sharded: false, LoadBalanced: false} {
		if err := bare.Can(Shape{Topology: topology}); (err == nil) != want {
			t.Errorf("%s without a mongos: %v", topology, err)
		}
	}
	whole := Release{Mongod: "/r/mongod", Mongos: "/r/mongos", Version: Version{5, 0, 6}}
	for topology, want := range map[Topology]bool{Standalone: true, ReplicaSet: true, Sharded: true, LoadBalanced: false} {
		if err := whole.Can(Shape{Topology: topology}); (err == nil) != want {
			t.Errorf("%s of 5.0.6: %v", topology, err)
		}
	}
}
