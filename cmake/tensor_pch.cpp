// SPDX-License-Identifier: Apache-2.0
// The translation unit behind the precompiled headers: tensors for components that use them,
// GoogleTest for tests.
