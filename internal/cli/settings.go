package cli

import (
	"github.com/unified-test-runner/utr/deployment"
)

// settingsFlags vary how clients and deployment communicate: the options of a matrix.
type settingsFlags struct {
	auth       *string
	tls        *bool
	serverAPI  *string
	uriOptions *[]deployment.URIOption
}

func (f *flags) settings() *settingsFlags {
	return &settingsFlags{
		auth: f.choice("auth", "MODE", "", "access control of the deployment that utr starts (default as each test requires)", "on", "off"),
		tls:  f.toggle("tls", "require TLS on the deployment that utr starts"),
		serverAPI: f.choice("server-api", "VERSION", "",
			"declare this version of the Stable API (1) for clients for which the suite declares none", "1"),
		uriOptions: list(f, "uri-option", "NAME=VALUE",
			"option for all connection strings, such as compressors=zlib", func(s string) (deployment.URIOption, error) {
				o, err := deployment.ParseURIOption(s)
				if err == nil {
					err = deployment.CheckURIOptions([]deployment.URIOption{o})
				}
				return o, err
			}),
	}
}

// embedded adds what is said about an embedded deployment.
func (s *settingsFlags) embedded(o *deployment.EmbeddedOptions) {
	o.TLS, o.URIOptions = *s.tls, *s.uriOptions
	if *s.auth != "" {
		on := *s.auth == "on"
		o.Auth = &on
	}
}
