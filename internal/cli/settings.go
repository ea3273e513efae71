package cli

import (
	"fmt"

	"github.com/unified-test-runner/utr/deployment"
)

// settingsFlags vary how clients and deployment talk with each other: what a
// matrix calls options.
type settingsFlags struct {
	flags      *flags
	auth       *string
	tls        *bool
	serverAPI  *string
	uriOptions uriOptionsFlag
}

func (f *flags) settings() *settingsFlags {
	s := &settingsFlags{
		flags:     f,
		auth:      f.choice("auth", "", "access control of the embedded deployment or local cluster (default: as each test requires)", "on", "off"),
		tls:       f.toggle("tls", "have the embedded deployment or local cluster want TLS"),
		serverAPI: f.choice("server-api", "", "declare this version of the Stable API for clients of which the suite says none", "1"),
	}
	f.add(&s.uriOptions, "uri-option", "NAME=VALUE", "option for all connection strings, such as compressors=zlib; may be repeated")
	return s
}

// embedded adds what is said about an embedded deployment.
func (s *settingsFlags) embedded(o *deployment.EmbeddedOptions) {
	o.TLS = *s.tls
	if *s.auth != "" {
		on := *s.auth == "on"
		o.Auth = &on
	}
}

// rerun gives the flags that say the same again.
func (s *settingsFlags) rerun() (args []string) {
	for _, name := range []string{"auth", "server-api"} {
		if s.flags.given(name) {
			args = append(args, "--"+name, s.flags.set.Lookup(name).Value.String())
		}
	}
	if *s.tls {
		args = append(args, "--tls")
	}
	for _, o := range s.uriOptions {
		args = append(args, "--uri-option", o.String())
	}
	return args
}

// uriOptionsFlag collects options of connection strings.
type uriOptionsFlag []deployment.URIOption

func (u *uriOptionsFlag) String() string { return "" }

func (u *uriOptionsFlag) Set(s string) error {
	o, err := deployment.ParseURIOption(s)
	if err != nil {
		return err
	}
	*u = append(*u, o)
	if err := deployment.CheckURIOptions([]deployment.URIOption{o}); err != nil {
		return fmt.Errorf("%w", err)
	}
	return nil
}
