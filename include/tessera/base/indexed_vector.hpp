// SPDX-License-Identifier: Apache-2.0
// A vector that takes one kind of index alone.
#pragma once

#include <initializer_list>
#include <utility>
#include <vector>

#include "tessera/base/index.hpp"

namespace tessera {

/// Element i belongs to the thing of index i. As std::vector does, operator[] checks nothing.
template <class I, class T>
class IndexedVector {
 public:
  using Vector = std::vector<T>;
  using value_type = T;
  using iterator = typename Vector::iterator;
  using const_iterator = typename Vector::const_iterator;

  IndexedVector() = default;
  explicit IndexedVector(int size, const T& value = T())
      : elements_(static_cast<std::size_t>(size), value) {}
  IndexedVector(std::initializer_list<T> elements) : elements_(elements) {}

  typename Vector::reference operator[](I index) { return elements_[index.position()]; }
  typename Vector::const_reference operator[](I index) const { return elements_[index.position()]; }

  int size() const { return static_cast<int>(elements_.size()); }
  bool empty() const { return elements_.empty(); }
  IndexRange<I> indexes() const { return IndexRange<I>(size()); }
  iterator begin() { return elements_.begin(); }
  iterator end() { return elements_.end(); }
  const_iterator begin() const { return elements_.begin(); }
  const_iterator end() const { return elements_.end(); }

  /// Gets the index size().
  void push_back(T element) { elements_.push_back(std::move(element)); }
  typename Vector::reference back() { return elements_.back(); }
  typename Vector::const_reference back() const { return elements_.back(); }
  /// New elements are T().
  void resize(int size) { elements_.resize(static_cast<std::size_t>(size)); }

  bool operator==(const IndexedVector&) const = default;

 private:
  Vector elements_;
};

}  // namespace tessera
