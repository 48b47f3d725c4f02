//! Which addresses may connect: single ones and networks, as `10.0.0.0/8` or `::1`.

use std::net::IpAddr;
use std::str::FromStr;

/// All addresses whose first bits are those of one address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddressRange {
    address: IpAddr,
    prefix_bits: u32,
}

/// The text is not an address, or has a prefix that is longer than one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadAddressRange;

impl FromStr for AddressRange {
    type Err = BadAddressRange;

    fn from_str(text: &str) -> Result<Self, BadAddressRange> {
        let (address, prefix) = match text.split_once('/') {
            Some((address, prefix)) => (address, Some(prefix)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| BadAddressRange)?;
        let bits = if address.is_ipv4() { 32 } else { 128 };
        let prefix_bits = prefix.map_or(Ok(bits), str::parse).map_err(|_| BadAddressRange)?;
        if prefix_bits > bits { Err(BadAddressRange) } else { Ok(Self { address, prefix_bits }) }
    }
}

impl AddressRange {
    pub fn contains(&self, other: IpAddr) -> bool {
        let bits = |address: IpAddr| match address {
            IpAddr::V4(address) => u128::from(address.to_bits()) << 96,
            IpAddr::V6(address) => address.to_bits(),
        };
        let differing = bits(self.address) ^ bits(other);
        self.address.is_ipv4() == other.is_ipv4() && differing.leading_zeros() >= self.prefix_bits
    }
}

/// Whether an address may connect. An IPv4 client of an IPv6 socket counts as what it is.
pub(crate) fn allows(allowed: &[AddressRange], address: IpAddr) -> bool {
    let address = address.to_canonical();
    allowed.is_empty() || allowed.iter().any(|range| range.contains(address))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_one_address_or_all_with_the_same_first_bits() {
        let is_in = |range: &str, address: &str| {
            range.parse::<AddressRange>().unwrap().contains(address.parse().unwrap())
        };
        assert!(is_in("10.0.0.1", "10.0.0.1") && !is_in("10.0.0.1", "10.0.0.2"));
        assert!(is_in("10.0.0.0/8", "10.255.0.1") && !is_in("10.0.0.0/8", "11.0.0.1"));
        assert!(is_in("0.0.0.0/0", "1.2.3.4") && !is_in("0.0.0.0/0", "::1"));
        assert!(is_in("fe80::/10", "fe80::1") && !is_in("fe80::/10", "::1"));
        for bad in ["", "a", "10.0.0.0/33", "::/129", "10.0.0.0/", "10.0.0.0/-1"] {
            assert_eq!(bad.parse::<AddressRange>(), Err(BadAddressRange), "{bad}");
        }
    }

    #[test]
    fn no_ranges_allow_everybody_and_mapped_addresses_count_as_ipv4() {
        let local = ["127.0.0.0/8".parse().unwrap()];
        assert!(allows(&[], "1.2.3.4".parse().unwrap()));
        assert!(allows(&local, "::ffff:127.0.0.1".parse().unwrap()));
        assert!(!allows(&local, "1.2.3.4".parse().unwrap()));
    }
}
