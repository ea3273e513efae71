// Package secret keeps what must not be shown out of what is shown: it knows what
// is secret in connection strings and URLs, and finds it in any text.
package secret

import (
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// Mark stands where a secret was.
const Mark = "***"

// options are the options of connection strings whose values are secrets (URI
// Options; Authentication, "authMechanismProperties"), in lower case.
var options = []string{"authmechanismproperties", "proxypassword", "sslclientcertificatekeypassword", "tlscertificatekeyfilepassword"}

// IsOption reports whether the value of an option of connection strings is secret.
func IsOption(name string) bool { return slices.Contains(options, strings.ToLower(name)) }

// The expressions for what is secret by its place: credentials before the host of
// a URL, which the last @ before the path ends, and the values of options.
var (
	userInfo    = regexp.MustCompile(`([a-zA-Z][a-zA-Z0-9+.-]*://)[^/?\s"'<>]*@`)
	optionValue = regexp.MustCompile(`(?i)\b(` + strings.Join(options, "|") + `)=[^&;\s"'<>]*`)
)

// Hide takes out of a text what is secret by its place, also where nobody has
// announced it.
func Hide(text string) string {
	return optionValue.ReplaceAllString(userInfo.ReplaceAllString(text, "${1}"+Mark+"@"), "$1="+Mark)
}

// Find gives the secrets of a text that is a URL, a connection string, an option
// NAME=VALUE, or an argument that holds one of them.
func Find(text string) (found []string) {
	for rest := text; ; {
		_, after, more := strings.Cut(rest, "://")
		if !more {
			break
		}
		found = append(found, ofURL(after)...)
		rest = after
	}
	name, value, _ := strings.Cut(strings.TrimPrefix(text, "--uri-option="), "=")
	return append(found, ofOption(name, value)...)
}

// ofURL gives the secrets of what follows the scheme.
func ofURL(rest string) (found []string) {
	hosts, query, _ := strings.Cut(rest, "?")
	if at := strings.LastIndex(hosts, "@"); at >= 0 {
		if _, password, with := strings.Cut(hosts[:at], ":"); with {
			found = append(found, password)
		}
	}
	for _, option := range strings.FieldsFunc(query, func(c rune) bool { return c == '&' || c == ';' }) {
		name, value, _ := strings.Cut(option, "=")
		found = append(found, ofOption(name, value)...)
	}
	return found
}

// ofOption gives the secrets of an option: of properties, what is not a name of a
// service or mechanism.
func ofOption(name, value string) (found []string) {
	if !IsOption(name) || value == "" || value == Mark {
		return nil
	}
	found = []string{value}
	if plain, err := url.QueryUnescape(value); err == nil {
		for _, property := range strings.Split(plain, ",") {
			if key, v, with := strings.Cut(property, ":"); with && strings.EqualFold(key, "AWS_SESSION_TOKEN") {
				found = append(found, v)
			}
		}
	}
	return found
}
