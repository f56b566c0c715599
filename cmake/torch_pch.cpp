// The translation unit behind the precompiled header that every LibTorch room shares.
