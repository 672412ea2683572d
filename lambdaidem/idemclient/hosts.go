package idemclient

import (
	"fmt"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"unicode"

	"golang.org/x/net/idna"
)

// origin is the scheme, host and port of a URL, in canonical form.
type origin struct{ scheme, host, port string }

// parseHost returns the origins for an entry of New's hosts: one origin, or two (https and http)
// for a loopback host without a scheme. It returns an error if the entry is not one exact host.
func parseHost(entry string) ([]origin, error) {
	scheme, authority, explicit := strings.Cut(entry, "://")
	if !explicit {
		scheme, authority = "https", entry
	}
	scheme = strings.ToLower(scheme)
	if scheme != "https" && scheme != "http" {
		return nil, fmt.Errorf("its scheme is %q; it must be https or http", scheme)
	}
	u, err := url.Parse(scheme + "://" + authority)
	if err != nil {
		return nil, fmt.Errorf("it is not host or host:port")
	}
	if u.Host != authority || strings.HasSuffix(authority, ":") {
		return nil, fmt.Errorf("it must be host or host:port and nothing else")
	}
	name, err := canonicalName(u.Hostname())
	if err != nil {
		return nil, fmt.Errorf("its host is not a valid international name: %w", err)
	}
	if !isExactName(name) {
		return nil, fmt.Errorf("its host must be one exact name, without wildcard or zone")
	}
	if p := u.Port(); p != "" {
		if n, err := strconv.ParseUint(p, 10, 16); err != nil || n == 0 {
			return nil, fmt.Errorf("its port must be 1 to 65535")
		}
	}
	origins := []origin{originOf(u)}
	if !explicit && isLoopback(name) {
		u.Scheme = "http"
		origins = append(origins, originOf(u))
	}
	return origins, nil
}

// originOf returns the origin of u. URLs with the same scheme have the same origin if net/http
// dials the same host and port for them, whatever the spelling of the host.
func originOf(u *url.URL) origin {
	name, err := canonicalName(u.Hostname())
	if err != nil { // net/http can't dial it
		name = u.Hostname()
	}
	o := origin{u.Scheme, name, u.Port()}
	if o.port == "" {
		o.port = map[string]string{"https": "443", "http": "80"}[o.scheme]
	}
	if n, err := strconv.ParseUint(o.port, 10, 16); err == nil {
		o.port = strconv.FormatUint(n, 10) // 0443 dials 443
	}
	return o
}

// canonicalName returns the form of a host name that comparisons use. An IP address gets its
// shortest form. Any other name gets the ASCII form that net/http dials, in lower case and without
// the dot of the DNS root. The error says that an international name has no ASCII form.
func canonicalName(host string) (string, error) {
	if addr, err := netip.ParseAddr(host); err == nil {
		return addr.String(), nil
	}
	if strings.ContainsFunc(host, func(r rune) bool { return r > unicode.MaxASCII }) {
		ascii, err := idna.Lookup.ToASCII(host)
		if err != nil {
			return "", err //nolint:wrapcheck // parseHost wraps it, originOf ignores it
		}
		host = ascii
	}
	host = strings.ToLower(host)
	name := strings.TrimSuffix(host, ".")
	if _, err := netip.ParseAddr(name); err == nil {
		return host, nil // keep the dot: 10.0.0.1 with a dot at its end is no IP address but a name, which DNS may resolve to any host
	}
	return name, nil
}

// isExactName reports whether a canonical name can be the name of one host: printable ASCII,
// without a wildcard, an IPv6 zone or a trailing dot.
func isExactName(name string) bool {
	return name != "" && !strings.HasSuffix(name, ".") && !strings.ContainsFunc(name, func(r rune) bool {
		return r <= ' ' || r > '~' || strings.ContainsRune(`*%"\`, r)
	})
}

// isLoopback reports whether a canonical host name means this machine (RFC 6761, section 6.3). A
// key may be sent there over plain HTTP, because the request crosses no network.
func isLoopback(host string) bool {
	if host == "localhost" {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.IsLoopback()
}
